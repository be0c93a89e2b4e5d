# SPDX-License-Identifier: Apache-2.0
import pytest

from hdl.ethernet.settings import EthernetSettings


def test_addresses_are_bytes_in_the_order_of_the_network():
    chosen = EthernetSettings(mac="02:AB:00:00:00:01", ip="10.0.0.2", port=258)
    assert chosen.mac_bytes == bytes((2, 0xAB, 0, 0, 0, 1))
    assert chosen.ip_bytes == bytes((10, 0, 0, 2))
    assert chosen.port_bytes == bytes((1, 2))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"mac": "02:00:00:00:00"}, "six bytes such as .*, not '02:00:00:00:00'"),
        ({"mac": "01:00:5e:00:00:01"}, "first byte is even, not '01:00:5e:00:00:01'"),
        ({"mac": "00:00:00:00:00:00"}, "one of a single device"),
        ({"ip": "224.0.0.1"}, "must be one of a device, not '224.0.0.1'"),
        ({"ip": "0.0.0.0"}, "must be one of a device"),
        ({"ip": "192.168.1"}, "192.168.1"),
        ({"port": 0}, "must be 1 to 65535, not 0"),
        ({"idle_cycles": 0}, "at least one cycle, not 0"),
        ({"receive_bytes": 1024}, "power of two of at least 2048 bytes, not 1024"),
        ({"receive_bytes": 5000}, "power of two of at least 2048 bytes, not 5000"),
    ],
)
def test_what_no_board_can_have_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        EthernetSettings(**change)
