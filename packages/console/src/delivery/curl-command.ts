/**
 * The request as a command for a POSIX shell with curl and openssl: the exact body, signed with the secret that
 * $HMAC_SECRET has when it runs. Without the secret it stops before anything is sent.
 */
export function curlCommand({ url, body }: { url: string; body: string }): string {
  return [
    `: "\${HMAC_SECRET:?Set it to the secret of this webhook}" &&`,
    `body=${shellQuoted(body)} &&`,
    `signature=$(printf %s "$body" | openssl dgst -sha256 -hmac "$HMAC_SECRET" -hex | sed 's/^.* //') &&`,
    // Brackets and braces are part of an address, and curl would expand them.
    `curl --include --globoff --request POST ${shellQuoted(url)} \\`,
    `  --header 'Content-Type: application/json' \\`,
    `  --header "Authorization: $signature" \\`,
    `  --data-raw "$body"`,
  ].join('\n');
}

/** One word of a shell, whatever is in it: nothing is special between single quotes, and they are put outside. */
export function shellQuoted(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
