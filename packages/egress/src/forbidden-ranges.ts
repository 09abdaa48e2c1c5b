/**
 * What a subscriber's URL must never reach, by the IANA special-purpose registries (RFC 6890 and its successors)
 * and what cloud providers add to them. Every entry is refused unless EGRESS_ALLOW_CIDRS opens it.
 */
export const forbiddenIpv4 = [
  '0.0.0.0/8', // "this network"; Linux connects 0.0.0.0 to loopback
  '10.0.0.0/8', // private
  '100.64.0.0/10', // carrier-grade NAT; a cloud's metadata service answers on 100.100.100.200
  '127.0.0.0/8', // loopback
  '168.63.129.16/32', // Azure's platform endpoint: a public address that only virtual machines reach
  '169.254.0.0/16', // link-local; metadata services answer on 169.254.169.254
  '172.16.0.0/12', // private
  '192.0.0.0/24', // IETF protocol assignments; a cloud's metadata service answers on 192.0.0.192
  '192.0.2.0/24', // documentation
  '192.31.196.0/24', // AS112
  '192.52.193.0/24', // multicast tunnelling relays
  '192.88.99.0/24', // 6to4 relays
  '192.168.0.0/16', // private
  '192.175.48.0/24', // AS112
  '198.18.0.0/15', // benchmarking
  '198.51.100.0/24', // documentation
  '203.0.113.0/24', // documentation
  '224.0.0.0/4', // multicast
  '240.0.0.0/4', // reserved, with the broadcast address
] as const;

/**
 * Only 2000::/3 is routed on the internet, so the five ranges beside it cover whatever is private, local, mapped or not
 * assigned: ::, ::1, IPv4-mapped and -compatible, NAT64, discard, ULA, link-local, site-local, multicast, SRv6.
 * A form that embeds an IPv4 address is refused whatever that address is: which host it reaches depends on the network.
 */
export const forbiddenIpv6 = [
  '::/3',
  '4000::/2',
  '8000::/2',
  'c000::/3',
  'e000::/3',
  '2001::/23', // IETF protocol assignments: Teredo, benchmarking, ORCHID, multicast tunnelling
  '2001:db8::/32', // documentation
  '2002::/16', // 6to4
  '2620:4f:8000::/48', // AS112
  '3ffe::/16', // the former 6bone
  '3fff::/20', // documentation
] as const;
