import { parser } from '@prometheus-io/lezer-promql';

/** The metrics and labels that a PromQL expression uses. */
export interface QueryReferences {
  metrics: string[];
  /** Label names of matchers and groupings. */
  labels: string[];
}

/** @throws if the expression is not PromQL */
export function findReferences(expression: string): QueryReferences {
  const metrics = new Set<string>();
  const labels = new Set<string>();
  parser.parse(expression).iterate({
    enter({ name, type, from, to, node }) {
      const text = expression.slice(from, to);
      if (type.isError) throw new SyntaxError(`not PromQL at ${from}: ${expression}`);
      if (name === 'Identifier' && node.parent?.name === 'VectorSelector') metrics.add(text);
      if (name === 'LabelName') labels.add(text);
    },
  });
  return { metrics: [...metrics], labels: [...labels] };
}
