import { connect, createServer } from 'node:net';

const HOST = '127.0.0.1';
const NEIGHBOURS = 20;

/**
 * A TCP port nobody listens on at 127.0.0.1: `preferred`, else one of the next twenty, else any.
 * `wasTaken` says that `preferred` was asked for and could not be had. Nothing reserves the port, so the caller
 * must be ready to find it taken a moment later.
 */
export async function findFreePort(preferred?: number): Promise<{ port: number; wasTaken: boolean }> {
  if (preferred === undefined || preferred === 0) return { port: await anyFreePort(), wasTaken: false };
  const last = Math.min(preferred + NEIGHBOURS, 65_535);
  for (let port = preferred; port <= last; port += 1) {
    if (await isPortFree(port)) return { port, wasTaken: port !== preferred };
  }
  return { port: await anyFreePort(), wasTaken: true };
}

/** Asks both ways: on some systems 127.0.0.1 can be bound while another process serves the port on all addresses. */
export async function isPortFree(port: number): Promise<boolean> {
  return !(await answers(port)) && (await listenOnce(port)) !== null;
}

async function anyFreePort(): Promise<number> {
  const port = await listenOnce(0);
  if (port === null) throw new Error(`no free port on ${HOST}`);
  return port;
}

function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host: HOST, port });
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}

function listenOnce(port: number): Promise<number | null> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(null));
    server.listen({ host: HOST, port, exclusive: true }, () => {
      const address = server.address();
      server.close(() => resolve(address !== null && typeof address === 'object' ? address.port : null));
    });
  });
}
