# SPDX-License-Identifier: Apache-2.0
"""The gate between the trees and a core, which notices that the core fails and answers for it."""
