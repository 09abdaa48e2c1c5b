import { isIP } from 'node:net';

/**
 * Returns the identity of one client: an IPv4 address, or the first 64 bits of an IPv6 address, since a client controls
 * all addresses of such a network. `address` must be one of the two; a mapped IPv4 address counts as IPv4.
 */
export function addressNetwork(address: string): string {
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1];
  if (mapped !== undefined) return mapped;
  if (isIP(address) !== 6) return address;
  const [plain = ''] = address.split('%');
  const [head = '', tail] = plain.replace(/\d+\.\d+\.\d+\.\d+$/, '0:0').split('::');
  const groupsOf = (text: string) => (text === '' ? [] : text.split(':'));
  const [leadingGroups, trailingGroups] = [groupsOf(head), groupsOf(tail ?? '')];
  const zeroGroups = new Array<string>(8 - leadingGroups.length - trailingGroups.length).fill('0');
  const groups = [...leadingGroups, ...zeroGroups, ...trailingGroups].map((group) =>
    Number.parseInt(group, 16).toString(16),
  );
  return `${groups.slice(0, 4).join(':')}::/64`;
}
