import { appendFileSync } from 'node:fs';

/**
 * Reports a figure for the row of a proof in docs/proofs.md. The command of the proof sets PROOF_FIGURES; otherwise this does
 * nothing.
 *
 * @param proof its name in scripts/prove/catalogue.mjs
 */
export function reportFigure(proof: string, figure: string): void {
  const file = process.env.PROOF_FIGURES;
  if (file !== undefined) appendFileSync(file, `${JSON.stringify({ proof, figure })}\n`);
}
