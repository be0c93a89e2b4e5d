# SPDX-License-Identifier: Apache-2.0
"""The machines behind a session, one file for each way of being connected to them."""

from pyspark.sql import SparkSession

from spark_offload.cluster.connect import ConnectCluster, ConnectStreams, is_connect
from spark_offload.cluster.context import ContextCluster
from spark_offload.cluster.contract import Cluster

__all__ = ["Cluster", "cluster_of", "is_connect"]


def cluster_of(session: SparkSession, *, streaming: bool = False) -> Cluster:
    """Return the machines of a session, as its streaming queries see them or as all others do."""
    if is_connect(session):
        return ConnectStreams(session) if streaming else ConnectCluster(session)
    return ContextCluster(session)
