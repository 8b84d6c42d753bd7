"""One libtorrent peer: shares or fetches one torrent TCP only, unencrypted.

Writes the file MARKER once it holds everything (every piece checked by libtorrent), then serves
until it is told to stop.
"""

import signal
import sys

import libtorrent as lt


def session(listen):
    """A session with everything off that would look beyond the tracker."""
    settings = lt.high_performance_seed()
    settings.update(
        {
            "listen_interfaces": listen,
            "enable_dht": False,
            "enable_lsd": False,
            "enable_upnp": False,
            "enable_natpmp": False,
            "enable_incoming_utp": False,
            "enable_outgoing_utp": False,
            "allow_multiple_connections_per_ip": True,
            "in_enc_policy": lt.enc_policy.disabled,
            "out_enc_policy": lt.enc_policy.disabled,
            "connection_speed": 200,
            "min_reconnect_time": 1,
            "unchoke_slots_limit": 50,
            "alert_mask": lt.alert.category_t.status_notification,
        }
    )
    return lt.session(settings)


def main():
    torrent, folder, listen, marker = sys.argv[1:5]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    peers = session(listen)
    peers.add_torrent({"ti": lt.torrent_info(torrent), "save_path": folder})
    finished = False
    while True:
        peers.wait_for_alert(1000)
        for alert in peers.pop_alerts():
            if isinstance(alert, lt.torrent_finished_alert) and not finished:
                finished = True
                open(marker, "w").close()


main()
