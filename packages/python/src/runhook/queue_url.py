"""Parses the services' `QUEUE_URL` (docs/configuration.md), and opens a redis-py client for it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, unquote

_URL_PATTERN = re.compile(
    r"(?P<scheme>rediss?)(?:\+(?P<kind>cluster|sentinel))?://(?:(?P<credentials>[^/?#]*)@)?(?P<hosts>[^/?#@]*)"
    r"(?P<path>/[^?#]*)?(?:\?(?P<query>[^#]*))?"
)
_HOST = re.compile(r"(?:\[(?P<address>[0-9a-fA-F:.]+)\]|(?P<name>[^:\[\]]+))(?::(?P<port>[0-9]{1,5}))?")
_PARAMETERS = {"family", "sentinelUsername", "sentinelPassword", "caFile", "certFile", "keyFile"}
_CONNECT_SECONDS = 3.0
_RETRY_AFTER_SECONDS = 0.1


@dataclass(frozen=True)
class QueueTarget:
    """The address and kind of Redis: one server, the nodes of a cluster, or the sentinels of a server."""

    kind: str
    nodes: tuple[tuple[str, int], ...]
    is_tls: bool
    username: str | None
    password: str | None
    database: int
    master_name: str
    parameters: Mapping[str, str]


def parse_queue_url(url: str) -> QueueTarget:
    """Raises `ValueError` with a sentence that explains the problem without repeating the URL."""
    if re.match(r"postgres(ql)?://", url):
        raise ValueError(
            "a queue in PostgreSQL is not for this package: publish over REST, with runhook.rest"
        )
    parts = _URL_PATTERN.fullmatch(url)
    if parts is None:
        raise ValueError(
            "the queue URL must start with redis://, rediss://, redis+cluster:// or redis+sentinel://"
        )
    kind = parts["kind"] or "single"
    nodes = _nodes(parts["hosts"], 26379 if kind == "sentinel" else 6379)
    if kind == "single" and len(nodes) > 1:
        raise ValueError("a redis:// URL names one server; several are redis+cluster:// or redis+sentinel://")
    username, _, password = (parts["credentials"] or "").partition(":")
    segments = [one for one in (parts["path"] or "").split("/") if one]
    if kind == "sentinel" and not segments:
        raise ValueError("a redis+sentinel:// URL names the master that the sentinels watch: …/mymaster")
    master_name = unquote(segments.pop(0)) if kind == "sentinel" else ""
    database = segments[0] if segments else "0"
    if len(segments) > 1 or not re.fullmatch("[0-9]{1,5}", database):
        raise ValueError("the last part of the queue URL must be the number of a database")
    if kind == "cluster" and int(database) > 0:
        raise ValueError("a Redis Cluster has only database 0")
    parameters = dict(parse_qsl(parts["query"] or ""))
    if not _PARAMETERS.issuperset(parameters):
        raise ValueError("the queue URL has an unknown parameter")
    return QueueTarget(
        kind=kind,
        nodes=nodes,
        is_tls=parts["scheme"] == "rediss",
        username=unquote(username) or None,
        password=unquote(password) or None,
        database=int(database),
        master_name=master_name,
        parameters=parameters,
    )


def _nodes(hosts: str, default_port: int) -> tuple[tuple[str, int], ...]:
    nodes = []
    for text in hosts.split(","):
        host = _HOST.fullmatch(text)
        port = int(host["port"] or default_port) if host else 0
        if host is None or not 1 <= port <= 65_535:
            raise ValueError("the queue URL must name its servers as host or host:port, separated by commas")
        nodes.append((host["address"] or host["name"], port))
    return tuple(nodes)


def open_client(target: QueueTarget) -> Any:
    """Returns a client that connects at its first use. Calls on a lost connection are retried once."""
    from redis.asyncio import Redis  # noqa: PLC0415
    from redis.asyncio.cluster import ClusterNode, RedisCluster  # noqa: PLC0415
    from redis.asyncio.retry import Retry  # noqa: PLC0415
    from redis.asyncio.sentinel import Sentinel  # noqa: PLC0415
    from redis.backoff import ConstantBackoff  # noqa: PLC0415

    tls = _tls_options(target)
    options: dict[str, Any] = {
        "username": target.username,
        "password": target.password,
        "decode_responses": True,
        "socket_connect_timeout": _CONNECT_SECONDS,
        "retry": Retry(ConstantBackoff(_RETRY_AFTER_SECONDS), 1),
        **tls,
    }
    if target.kind == "cluster":
        nodes = [ClusterNode(host, port) for host, port in target.nodes]
        return RedisCluster(startup_nodes=nodes, **options)
    options["db"] = target.database
    if target.kind == "single":
        ((host, port),) = target.nodes
        return Redis(host=host, port=port, **options)
    sentinel_options = {
        "username": target.parameters.get("sentinelUsername"),
        "password": target.parameters.get("sentinelPassword"),
        "socket_connect_timeout": _CONNECT_SECONDS,
        **tls,
    }
    sentinel = Sentinel(list(target.nodes), sentinel_kwargs=sentinel_options, **options)
    return sentinel.master_for(target.master_name)


def _tls_options(target: QueueTarget) -> dict[str, Any]:
    if not target.is_tls:
        return {}
    files = {"ssl_ca_certs": "caFile", "ssl_certfile": "certFile", "ssl_keyfile": "keyFile"}
    return {"ssl": True, **{option: target.parameters.get(name) for option, name in files.items()}}
