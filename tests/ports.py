"""Ports for servers of tests."""

import socket


def free_port(kind=socket.SOCK_STREAM):
    with socket.socket(socket.AF_INET, kind) as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def free_udp_port():
    """Also for a multicast bus: nothing else of this machine has it just now."""
    return free_port(socket.SOCK_DGRAM)
