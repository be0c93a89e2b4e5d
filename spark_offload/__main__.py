# SPDX-License-Identifier: Apache-2.0
"""``python -m spark_offload``: joins of files through Spark, the demo, measurements."""

import argparse
from collections.abc import Sequence
import sys

from py4j.protocol import Py4JError
import pyarrow as pa
from pyspark.errors import PySparkException

from host import JoinError
from spark_offload import bench_command, demo, join_command, zip_command
from spark_offload.java_log import kept_java_log
from spark_offload.streaming import bench

__all__ = ["main", "parser"]


def parser(*, of_files: bool = False) -> argparse.ArgumentParser:
    """Return the parser of the command line.

    Parameters
    ----------
    of_files : bool
        Whether the demo is asked to join the user's files instead of generated streams.
    """
    result = argparse.ArgumentParser(prog="python -m spark_offload", description=__doc__)
    commands = result.add_subparsers(dest="command", required=True, metavar="COMMAND")
    join_command.add_parser(commands)
    demo.add_parser(commands, of_files=of_files)
    bench_command.add_parser(commands)
    zip_command.add_parser(commands)
    bench.add_parser(commands)
    return result


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return its exit code: 2 for wrong usage, 1 for a failure."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    of_files = any(word.startswith(("--left", "--right")) for word in words)
    options = parser(of_files=of_files).parse_args(words)
    try:
        return int(options.run(options))
    except JoinError as error:
        return _complain(options.command, str(error), error.exit_code)
    except KeyboardInterrupt:
        return _complain(options.command, "interrupted", 130)
    except (PySparkException, Py4JError, ConnectionError) as error:
        log = kept_java_log()
        printed = "" if log is None else f" (what Java has printed is in {log})"
        return _complain(options.command, f"Spark: {_first_line(error)}{printed}", 1)
    except (OSError, MemoryError, pa.ArrowException) as error:
        return _complain(options.command, _first_line(error), 1)


def _complain(command: str, message: str, code: int) -> int:
    print(f"python -m spark_offload {command}: {message}", file=sys.stderr)
    return code


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


if __name__ == "__main__":
    sys.exit(main())
