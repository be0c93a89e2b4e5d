# SPDX-License-Identifier: Apache-2.0
"""Words on their way into a device, the words that configure it, and the wait for it."""
