// The vectors of packages/contract/golden/ed25519.json: deliveries with Ed25519 signatures, made from keys in DER, because the code under
// test makes them from JSON Web Keys.
import { createPrivateKey, sign } from 'node:crypto';

/** The keys of the first three tests of RFC 8032, section 7.1, in hexadecimal. */
const KEYS = [
  [
    '9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60',
    'd75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a',
  ],
  [
    '4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb',
    '3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c',
  ],
  [
    'c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7',
    'fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025',
  ],
].map(([seed, point]) => ({ seed: Buffer.from(seed, 'hex'), point: Buffer.from(point, 'hex') }));

const publicKeyOf = ({ point }) => `whpk_${point.toString('base64')}`;
const privateKeyOf = ({ seed, point }) => `whsk_${Buffer.concat([seed, point]).toString('base64')}`;

/** The DER of a private key (RFC 8410) is this and the 32 bytes of the key. */
const PKCS8_PREFIX = Buffer.from('302e020100300506032b657004220420', 'hex');

const signatureOf = (content, { seed }) => {
  const key = createPrivateKey({ key: Buffer.concat([PKCS8_PREFIX, seed]), format: 'der', type: 'pkcs8' });
  return `v1a,${sign(null, Buffer.from(content), key).toString('base64')}`;
};

/**
 * @param {object} options
 * @param {string} options.about
 * @param {{ name: string, body: string }[]} options.events the body of the first is that of most vectors
 * @param {string} options.id of the event
 * @param {number} options.signedAt seconds since the epoch
 * @param {number} options.toleranceSeconds
 * @param {(body: string, id: string, seconds: number) => string} options.signature by the secret, `v1,…`
 */
export function goldenEd25519({ about, events, id, signedAt, toleranceSeconds, signature }) {
  const [{ body }] = events;
  const [key, nextKey, foreignKey] = KEYS;
  const by = (signer, text = body, seconds = signedAt) => signatureOf(`${id}.${seconds}.${text}`, signer);
  const one = (name, isGenuine, change = {}) => {
    const { body: text = body, signatures, headers, keys = [key], ageSeconds = 1 } = change;
    return {
      name,
      body: text,
      bodyBase64: Buffer.from(text, 'utf8').toString('base64'),
      headers: {
        'webhook-id': id,
        'webhook-timestamp': String(signedAt),
        'webhook-signature': (signatures ?? [signature(body, id, signedAt), by(key)]).join(' '),
        ...headers,
      },
      publicKeys: keys.map(publicKeyOf),
      nowMs: (signedAt + ageSeconds) * 1000,
      genuine: isGenuine,
    };
  };
  const secretOnly = signature(body, id, signedAt);
  const rotation = [secretOnly, by(key), by(nextKey)];
  return {
    about,
    toleranceSeconds,
    keys: KEYS.map((pair) => ({ publicKey: publicKeyOf(pair), privateKey: privateKeyOf(pair) })),
    deliveries: [
      ...events.map(({ name, body: text }) =>
        one(name, true, { body: text, signatures: [signature(text, id, signedAt), by(key, text)] }),
      ),
      one('an empty body', true, { body: '', signatures: [by(key, '')] }),
      one('a rotation, for a receiver with the old key', true, { signatures: rotation }),
      one('a rotation, for a receiver with the new key', true, { signatures: rotation, keys: [nextKey] }),
      one('a rotation, for a receiver with both', true, { signatures: rotation, keys: [nextKey, key] }),
      one('after a rotation, for a receiver with the old key', false, {
        signatures: [secretOnly, by(nextKey)],
      }),
      one('the webhook of another account at the same address', false, {
        signatures: [secretOnly, by(foreignKey)],
      }),
      one('the signature by the secret alone', false, { signatures: [secretOnly] }),
      one('the signature by the secret under the version of the key', false, {
        signatures: [secretOnly.replace('v1,', 'v1a,')],
      }),
      one('the signature under the version of the secret', false, {
        signatures: [by(key).replace('v1a,', 'v1,')],
      }),
      one('foreign and malformed signatures before the right one', true, {
        signatures: ['v1a,AAAA', 'v1a,', by(foreignKey), by(key)],
      }),
      one('a signature without its padding', false, { signatures: [by(key).slice(0, -2)] }),
      one('a signature of the body alone', false, { signatures: [signatureOf(body, key)] }),
      one('a line end behind the body', false, {
        body: `${body}\n`,
        signatures: [by(key)],
      }),
      one('another event id', false, { headers: { 'webhook-id': `${id.slice(0, -1)}r` } }),
      one('another time', false, { headers: { 'webhook-timestamp': String(signedAt + 1) } }),
      one('signed as long ago as may be', true, { ageSeconds: toleranceSeconds }),
      one('signed too long ago', false, { ageSeconds: toleranceSeconds + 1 }),
      one('signed in the future', false, { ageSeconds: -toleranceSeconds - 1 }),
      one('a time that is none', false, {
        headers: { 'webhook-timestamp': 'soon' },
        signatures: [by(key, body, 'soon')],
      }),
    ],
  };
}
