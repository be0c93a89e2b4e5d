# SPDX-License-Identifier: Apache-2.0
"""Engines that answer a join over arriving tuples; the software engine lives here.

An engine gets the tuples of both sides in their order of arrival, and returns pairs in the strict
order (:mod:`host.engine.software`), or the closest right row of each left one
(:mod:`host.engine.asof`). It knows neither words nor devices, and shares no code with the
reference joins, so that tests compare two ways to one answer. What turns rows into tuples is in
:mod:`host.columns`, and what drives an engine or a device is in :mod:`host.session`.
"""
