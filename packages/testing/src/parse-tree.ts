/** A node of PostgreSQL's parse tree, as `pg_node_tree` writes it: `{TYPE :field values …}`. */
export interface ParseNode {
  type: string;
  /** The values of each field; a field of one value is an array too. */
  fields: Map<string, ParseValue[]>;
}
export type ParseValue = ParseNode | ParseValue[] | string;

/** Parses the text of a `pg_node_tree`. */
export function parseNodeTree(text: string): ParseValue[] {
  const tokens = text.match(/[{}()]|"(?:\\.|[^"\\])*"|(?:\\.|[^\s{}()\\])+/gs) ?? [];
  let next = 0;

  function list(end: string): ParseValue[] {
    const values: ParseValue[] = [];
    while (next < tokens.length && tokens[next] !== end) values.push(value());
    next += 1;
    return values;
  }

  function value(): ParseValue {
    const token = tokens[next++] ?? '';
    if (token === '(') return list(')');
    return token === '{' ? node() : token;
  }

  function node(): ParseNode {
    const type = tokens[next++] ?? '';
    const fields = new Map<string, ParseValue[]>();
    let field: ParseValue[] = [];
    for (; next < tokens.length && tokens[next] !== '}'; ) {
      const token = tokens[next] ?? '';
      if (/^:[a-z_]/i.test(token)) {
        field = [];
        fields.set(token.slice(1), field);
        next += 1;
      } else field.push(value());
    }
    next += 1;
    return { type, fields };
  }

  return list('');
}

export function isNode(value: ParseValue | undefined): value is ParseNode {
  return typeof value === 'object' && !Array.isArray(value);
}

/** Yields the nodes of values in depth-first order, and does not descend into those that `isBoundary` accepts. */
export function* nodesOf(
  values: readonly ParseValue[],
  isBoundary: (node: ParseNode) => boolean = () => false,
): Generator<ParseNode> {
  for (const value of values) {
    if (Array.isArray(value)) yield* nodesOf(value, isBoundary);
    else if (isNode(value)) {
      yield value;
      if (isBoundary(value)) continue;
      for (const field of value.fields.values()) yield* nodesOf(field, isBoundary);
    }
  }
}

/** Returns the nodes in the list of a field, as `:targetList ({…} {…})`. */
export function listOf({ fields }: ParseNode, field: string): ParseNode[] {
  const [list] = fields.get(field) ?? [];
  return Array.isArray(list) ? list.filter(isNode) : [];
}

/** Returns the value of a field that is an identifier or a number; empty if there is none. */
export function tokenOf({ fields }: ParseNode, field: string): string {
  const [token] = fields.get(field) ?? [];
  return typeof token === 'string' ? token : '';
}
