import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto';

/** A certificate, optionally followed by intermediate ones, and its unencrypted private key, in PEM. */
export interface ClientCertificate {
  cert: string;
  key: string;
}

/** The settings of a service for its client certificate, under the names that they have in its `settings.ts`. */
interface CertificateSettings {
  egressClientCert?: string;
  egressClientKey?: string;
}

/** Returns the certificate that is presented to endpoints which request one; undefined if none is configured. */
export function clientCertificateOf({
  egressClientCert: cert,
  egressClientKey: key,
}: CertificateSettings): ClientCertificate | undefined {
  return cert === undefined || key === undefined ? undefined : { cert, key };
}

/** @throws Error without the text, if it does not begin with a certificate in PEM */
export function parseCertificate(text: string): string {
  if (readCertificate(text) === null) throw new Error('the text is not a certificate in PEM');
  return text;
}

/**
 * @param certificate as in {@link parseCertificate}; an invalid one is not compared with the key
 * @throws Error without the text, if it is not the unencrypted private key of the certificate in PEM
 */
export function parseClientKey(text: string, certificate: string | undefined): string {
  const key = readKey(text);
  if (key === null) throw new Error('the text is not an unencrypted private key in PEM');
  const x509 = certificate === undefined ? null : readCertificate(certificate);
  if (x509 !== null && !x509.checkPrivateKey(key))
    throw new Error('the key is not that of the client certificate');
  return text;
}

function readCertificate(text: string): X509Certificate | null {
  try {
    return new X509Certificate(text);
  } catch {
    return null;
  }
}

function readKey(text: string): KeyObject | null {
  try {
    return createPrivateKey(text);
  } catch {
    return null;
  }
}
