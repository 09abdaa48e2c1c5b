/** The name has no address, or its servers did not say in time. */
export class NameNotResolvedError extends Error {
  override readonly name = 'NameNotResolvedError';
  readonly code = 'ERR_NAME_NOT_RESOLVED';
}

/** The guard refuses every address the target has; `address` is one of them. */
export class AddressForbiddenError extends Error {
  override readonly name = 'AddressForbiddenError';
  readonly code = 'ERR_ADDRESS_FORBIDDEN';
  readonly address: string;

  constructor(address: string) {
    super(`The address ${address} is not allowed.`);
    this.address = address;
  }
}

/** The endpoint said something HTTP allows but a webhook's endpoint has no reason to say. */
export class UnexpectedAnswerError extends Error {
  override readonly name = 'UnexpectedAnswerError';
  readonly code = 'ERR_UNEXPECTED_ANSWER';
}

/** The egress was closed by its owner. */
export class EgressClosedError extends Error {
  override readonly name = 'EgressClosedError';
  readonly code = 'ERR_EGRESS_CLOSED';
}
