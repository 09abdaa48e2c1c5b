/** The end of a navigation: a response without a redirect, or a redirect to the sign-in page. */
export interface Arrival {
  url: string;
  status: number;
  headers: Headers;
  text: string;
}

const USER_AGENT = 'Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0';

/** A browser without scripts: follows redirects, and keeps cookies by host, as browsers do. */
export class SignInBrowser {
  readonly #cookies = new Map<string, Map<string, string>>();

  async open(url: string): Promise<Arrival> {
    let address = url;
    while (true) {
      const { hostname } = new URL(address);
      const response = await fetch(address, {
        redirect: 'manual',
        headers: { accept: 'text/html', 'user-agent': USER_AGENT, cookie: this.cookieOf(hostname) },
      });
      this.#store(hostname, response.headers.getSetCookie());
      const location = response.headers.get('location');
      const next = location === null ? null : new URL(location, address).href;
      if (next !== null && !new URL(next).pathname.endsWith('/sign-in')) {
        address = next;
        continue;
      }
      const { status, headers } = response;
      return { url: next ?? address, status, headers, text: await response.text() };
    }
  }

  /** Returns the `Cookie` header for the host. */
  cookieOf(hostname: string): string {
    return [...(this.#cookies.get(hostname) ?? [])].map(([name, value]) => `${name}=${value}`).join('; ');
  }

  #store(hostname: string, setCookies: string[]): void {
    const cookies = this.#cookies.get(hostname) ?? new Map<string, string>();
    this.#cookies.set(hostname, cookies);
    for (const text of setCookies) {
      const [pair = '', ...attributes] = text.split(';').map((part) => part.trim());
      const separator = pair.indexOf('=');
      const name = pair.slice(0, separator);
      const isRemoved = attributes.includes('Max-Age=0') || /expires=thu, 01 jan 1970/i.test(text);
      if (isRemoved) cookies.delete(name);
      else cookies.set(name, pair.slice(separator + 1));
    }
  }
}
