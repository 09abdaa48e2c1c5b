import { crc32, deflateSync } from 'node:zlib';
import type { Page } from 'playwright-core';

/**
 * Tolerance of a comparison. A pixel differs if its colour is outside the range of the colours around its position in the
 * other picture: slightly different edges of letters do not differ, moved or recoloured elements do.
 */
export interface ComparisonTolerance {
  /** Distance in pixels around the position. */
  radius: number;
  /** Tolerance of each channel, of 255. */
  tolerance: number;
  /** Maximum number of differing pixels in any square of 32 by 32 pixels. */
  othersMax: number;
}

/** Tolerance for pictures by the same release of Chromium. */
export const SAME_BROWSER: ComparisonTolerance = { radius: 1, tolerance: 8, othersMax: 12 };
/** Tolerance for other releases, which hint and space letters differently. */
export const OTHER_BROWSER: ComparisonTolerance = { radius: 4, tolerance: 16, othersMax: 24 };

export interface Comparison {
  /** Number of differing pixels in the worst square; null if the pictures have different sizes. */
  others: number | null;
  isAlike: boolean;
  /** The picture, pale, with differing pixels in red: PNG as base64; empty if the pictures are alike. */
  difference: string;
}

/**
 * Compares two pictures.
 * @param page any page, in which the comparison is computed
 * @param stored stored picture, created by `toStoredPicture`
 * @param current screenshot as base64
 */
export async function compare(
  page: Page,
  stored: Buffer,
  current: string,
  likeness: ComparisonTolerance,
): Promise<Comparison> {
  return await page.evaluate(
    `(${COMPARE_SCRIPT})(${JSON.stringify([stored.toString('base64'), current])}, ${JSON.stringify(likeness)})`,
  );
}

interface Indexed {
  width: number;
  height: number;
  /** Colours as numbers, 0xRRGGBB; at most 256. */
  palette: number[];
  /** Palette index of each pixel, one byte each, as base64. */
  indices: string;
}

/** Encodes a picture for storage: PNG with a palette, a tenth of the size of a screenshot. */
export async function toStoredPicture(page: Page, picture: string): Promise<Buffer> {
  const { width, height, palette, indices }: Indexed = await page.evaluate(
    `(${INDEX_SCRIPT})(${JSON.stringify(picture)})`,
  );
  const pixels = Buffer.from(indices, 'base64');
  const lines = Array.from({ length: height }, (_, y) =>
    Buffer.concat([Buffer.of(0), pixels.subarray(y * width, (y + 1) * width)]),
  );
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.set([8, 3], 8);
  return Buffer.concat([
    Buffer.from('89504e470d0a1a0a', 'hex'),
    chunk('IHDR', header),
    chunk(
      'PLTE',
      Buffer.from(palette.flatMap((colour) => [colour >> 16, (colour >> 8) & 255, colour & 255])),
    ),
    chunk('IDAT', deflateSync(Buffer.concat(lines), { level: 9 })),
    chunk('IEND', Buffer.alloc(0)),
  ]);
}

function chunk(name: string, content: Buffer): Buffer {
  const named = Buffer.concat([Buffer.from(name, 'latin1'), content]);
  const ends = Buffer.alloc(8);
  ends.writeUInt32BE(content.length, 0);
  ends.writeUInt32BE(crc32(named), 4);
  return Buffer.concat([ends.subarray(0, 4), named, ends.subarray(4)]);
}

const READ_SCRIPT = `
  const pixelsOf = async (base64) => {
    const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
    const bitmap = await createImageBitmap(new Blob([bytes]));
    const context = new OffscreenCanvas(bitmap.width, bitmap.height).getContext('2d', { willReadFrequently: true });
    context.drawImage(bitmap, 0, 0);
    return { context, width: bitmap.width, height: bitmap.height };
  };
  const written = async (context, options) => {
    const blob = await context.canvas.convertToBlob(options);
    const url = await new Promise((resolve) => {
      const reader = new FileReader();
      reader.onload = () => resolve(reader.result);
      reader.readAsDataURL(blob);
    });
    return url.slice(url.indexOf(',') + 1);
  };`;

/** Rounds the colours that are not retained. */
const FEWER_COLOURS = `
  const readPixels = ({ context, width, height }) => {
    const { data: bytes } = context.getImageData(0, 0, width, height);
    return { pixels: new Uint32Array(bytes.buffer), bytes, width, height };
  };
  const roundColours = (pixels, retained) => {
    const rounded = (pixel) =>
      [0, 8, 16].reduce((sum, shift) => sum + (Math.min(255, Math.round(((pixel >>> shift) & 255) / 32) * 32) << shift), 0);
    const colours = new Map();
    for (let index = 0; index < pixels.length; index += 1) {
      const pixel = pixels[index];
      if (!colours.has(pixel)) colours.set(pixel, retained.has(pixel) ? pixel : rounded(pixel) | 0xff000000);
      pixels[index] = colours.get(pixel);
    }
  };`;

/** Surfaces and most of the text keep their exact colours. The many colours of letter edges are rounded. */
const RETAIN_COMMON = `
  const retainCommon = (pixels) => {
    const counts = new Map();
    for (const pixel of pixels) counts.set(pixel, (counts.get(pixel) ?? 0) + 1);
    const byCount = [...counts].sort(([one, ofOne], [other, ofOther]) => ofOther - ofOne || one - other);
    return new Set(byCount.slice(0, 64).map(([pixel]) => pixel));
  };`;

const INDEX_SCRIPT = `async (base64) => {${READ_SCRIPT}${FEWER_COLOURS}${RETAIN_COMMON}
  const { pixels, width, height } = readPixels(await pixelsOf(base64));
  roundColours(pixels, retainCommon(pixels));
  const colours = [...new Set(pixels)];
  if (colours.length > 256) throw new Error('a palette has at most 256 colours, the picture has ' + colours.length);
  const indexOf = new Map(colours.map((colour, index) => [colour, index]));
  const indices = Uint8Array.from(pixels, (pixel) => indexOf.get(pixel));
  let text = '';
  for (let start = 0; start < indices.length; start += 8192)
    text += String.fromCharCode(...indices.subarray(start, start + 8192));
  const palette = colours.map((colour) => ((colour & 255) << 16) | (colour & 0xff00) | ((colour >>> 16) & 255));
  return { width, height, palette, indices: btoa(text) };
}`;

const COMPARE_SCRIPT = `async (pictures, { radius, tolerance, othersMax }) => {${READ_SCRIPT}${FEWER_COLOURS}
  const [stored, now] = await Promise.all(pictures.map(pixelsOf));
  const { width, height } = stored;
  if (now.width !== width || now.height !== height)
    return { others: null, isAlike: false, difference: await written(now.context, { type: 'image/png' }) };
  const both = [stored, now].map(readPixels);
  const [one, other] = both.map(({ pixels }) => pixels);
  // The colours of the stored picture decide: the most common ones of the other can differ because of a single pixel.
  roundColours(other, new Set(one));
  const data = both.map(({ bytes }) => bytes);
  const isStrange = (pixels, around, x, y) => {
    for (let channel = 0; channel < 3; channel += 1) {
      let least = 255;
      let most = 0;
      for (let row = Math.max(0, y - radius); row <= Math.min(height - 1, y + radius); row += 1)
        for (let column = Math.max(0, x - radius); column <= Math.min(width - 1, x + radius); column += 1) {
          const value = around[(row * width + column) * 4 + channel];
          if (value < least) least = value;
          if (value > most) most = value;
        }
      const value = pixels[(y * width + x) * 4 + channel];
      if (value < least - tolerance || value > most + tolerance) return true;
    }
    return false;
  };
  const squares = new Map();
  const found = [];
  for (let index = 0; index < one.length; index += 1) {
    if (one[index] === other[index]) continue;
    const x = index % width;
    const y = (index - x) / width;
    if (!isStrange(data[0], data[1], x, y) && !isStrange(data[1], data[0], x, y)) continue;
    const square = (y >> 5) * 4096 + (x >> 5);
    squares.set(square, (squares.get(square) ?? 0) + 1);
    found.push(index);
  }
  const others = Math.max(0, ...squares.values());
  if (others <= othersMax) return { others, isAlike: true, difference: '' };
  const { context } = now;
  context.fillStyle = 'rgb(255 255 255 / 0.7)';
  context.fillRect(0, 0, width, height);
  context.fillStyle = '#e00';
  for (const index of found) context.fillRect(index % width, Math.floor(index / width), 1, 1);
  return { others, isAlike: false, difference: await written(context, { type: 'image/png' }) };
}`;
