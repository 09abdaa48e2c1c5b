/** A start that cannot go on, for a reason that is told in a sentence and needs no stack. */
export class StartFailed extends Error {
  override readonly name = 'StartFailed';
}
