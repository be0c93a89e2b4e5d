# SPDX-License-Identifier: Apache-2.0
"""Results of an accelerator as rows: decoding, order, rows that come alone, release."""
