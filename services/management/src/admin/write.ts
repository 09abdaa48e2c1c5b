import { AdminError } from './errors.ts';

/**
 * Writes the text and a newline; resolves when they are on their way. A reader that left (`| head`) wants no more,
 * which is no error of ours; any other trouble is an `AdminError`.
 */
export function write(stream: NodeJS.WritableStream, text: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const settle = (error?: NodeJS.ErrnoException | null) => {
      if (!error || error.code === 'EPIPE') return resolve();
      reject(new AdminError('output', `What was done is done, but it could not be written: ${error.code}.`));
    };
    // Without a listener, the stream's error would end the process as well.
    stream.on('error', settle);
    stream.write(`${text}\n`, settle);
  });
}
