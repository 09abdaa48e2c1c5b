const LENGTH_MAX = 72;
const COMPONENT = /^[\w ,./@+-]+: /;
/** Words at the beginning that cannot be an imperative. */
const NO_VERBS =
  /^(?:a|an|the|this|that|these|those|what|who|whoever|how|when|where|of|in|on|at|by|for|from|with|without|as|no|not|now|new|more|less|one|two|it|its|there|all|both|each|every|some|any|same|own|only|also)$/i;
/** Endings of other forms of a verb: adds, added, adding. */
const OTHER_FORMS = /(?:[^s]s|[^e]ed|ing)$/i;
const IMPERATIVES =
  /^(?:access|address|alias|bias|bring|bus|bypass|canvas|embed|focus|need|ping|process|ring|shed|string|wing)$/i;

/**
 * Returns why the subject of a commit is not accepted, or null.
 *
 * @param {string} subject with or without a component at its beginning, such as `dispatcher: drop unused references`
 */
export function subjectProblem(subject) {
  if (subject.startsWith('Revert "')) return null;
  if (subject.length > LENGTH_MAX) return `${subject.length} characters; at most ${LENGTH_MAX} are permitted`;
  const text = subject.replace(COMPONENT, '');
  const [verb = ''] = /^[A-Za-z-]+/.exec(text) ?? [];
  if (verb === '' || !text.includes(' ')) return 'write a verb in the imperative and its object';
  if (IMPERATIVES.test(verb)) return null;
  if (NO_VERBS.test(verb) || OTHER_FORMS.test(verb))
    return `begin with a verb in the imperative instead of "${verb}"`;
  return null;
}
