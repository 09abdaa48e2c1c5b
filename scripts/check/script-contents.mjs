const LOG_FUNCTION = /^(?:trace|debug|info|warn|error|fatal|log|write|note|line|step)$/;
const LOGGER_OBJECT = /(?:^|\.)(?:log|logger|console|stdout|stderr|terminal)$/i;
const ERROR_CONSTRUCTOR = /(?:Error|Failed|Failure|Exception)$/;
const TEST_FUNCTION = /^(?:test|it|describe)$/;
/** Matches the tag, type and name of a parameter in a comment: names are checked where they are declared. */
const PARAMETER = /@param(?: +\{.*\})? +[\w.[\]]+/g;
/** Matches comments for tools. */
const DIRECTIVE = /^(?:biome-ignore|@ts-|eslint-|#!)/;

/**
 * Returns the comments, the texts for people and the declared names of a TypeScript or JavaScript file.
 *
 * @param {string} text
 * @param {{ program: object, comments: object[] }} parsed as rolldown's parser returns it
 */
export function scriptContents(text, { program, comments }) {
  const lineOf = lineFinder(text);
  const found = { comments: mergedComments(text, comments, lineOf), texts: [], names: [] };
  const added = new Set();
  const add = (node) => {
    if (added.has(node.start)) return;
    added.add(node.start);
    found.texts.push({ line: lineOf(node.start), text: textOf(node) });
  };
  visit(program, (node) => {
    for (const { start, name } of declaredBy(node)) found.names.push({ line: lineOf(start), name });
    for (const value of messagesOf(node)) visit(value, (inner) => isText(inner) && add(inner));
  });
  return found;
}

/** Returns a comment for each block of `//` lines, without directives of tools. */
function mergedComments(text, comments, lineOf) {
  const merged = [];
  let last = null;
  for (const { type, start, end } of comments) {
    const isNext =
      last?.type === 'Line' && type === 'Line' && /^[ \t]*\n[ \t]*$/.test(text.slice(last.end, start));
    if (isNext) last.end = end;
    else {
      last = { type, start, end };
      merged.push(last);
    }
  }
  return merged
    .map(({ start, end }) => ({ line: lineOf(start), text: bareComment(text.slice(start, end)) }))
    .filter(({ text: bare }) => !isDirective(bare));
}

/** Returns a comment without its delimiters; the line breaks remain. */
export function bareComment(raw) {
  const text = raw.replaceAll(/^[ \t]*(?:\/\*\*?|\*\/|\*(?!\/)|\/\/)[ \t]?/gm, '').replace(/\*\/\s*$/, '');
  return text.replaceAll(PARAMETER, (found) => ' '.repeat(found.length));
}

/** Whether a comment is for a tool. */
export function isDirective(text) {
  return DIRECTIVE.test(text.trim());
}

/** Returns the arguments of calls that write logs, throw errors or name tests. */
function messagesOf(node) {
  if (node.type === 'NewExpression' && ERROR_CONSTRUCTOR.test(nameOf(node.callee))) return node.arguments;
  if (node.type !== 'CallExpression') return [];
  const callee = nameOf(node.callee);
  if (node.callee.type === 'Super') return node.arguments;
  if (TEST_FUNCTION.test(rootOf(node.callee)) && isText(node.arguments[0])) return [node.arguments[0]];
  const [, object, method] = /^(.*)\.(\w+)$/.exec(callee) ?? [];
  return LOG_FUNCTION.test(method) && LOGGER_OBJECT.test(object) ? node.arguments : [];
}

const isText = (node) =>
  (node?.type === 'Literal' && typeof node.value === 'string') || node?.type === 'TemplateLiteral';

function textOf(node) {
  return node.type === 'Literal'
    ? node.value
    : node.quasis.map(({ value }) => value.cooked ?? '').join(' … ');
}

function nameOf(node) {
  if (node?.type === 'Identifier') return node.name;
  if (node?.type === 'ThisExpression') return 'this';
  if (node?.type !== 'MemberExpression') return '';
  return `${nameOf(node.object)}.${node.property.name ?? ''}`;
}

function rootOf(node) {
  if (node?.type === 'MemberExpression') return rootOf(node.object);
  if (node?.type === 'CallExpression') return rootOf(node.callee);
  return node?.type === 'Identifier' ? node.name : '';
}

const MEMBER_NODES = new Set([
  'AccessorProperty',
  'MethodDefinition',
  'PropertyDefinition',
  'TSMethodSignature',
  'TSPropertySignature',
]);
const DECLARATION_NODES = new Set([
  'ClassDeclaration',
  'ClassExpression',
  'FunctionDeclaration',
  'FunctionExpression',
  'TSEnumDeclaration',
  'TSEnumMember',
  'TSInterfaceDeclaration',
  'TSTypeAliasDeclaration',
  'VariableDeclarator',
]);

/** Returns the identifiers that a node declares: variables, parameters, functions, types, and members, also of object literals. */
function declaredBy(node) {
  const params = Array.isArray(node.params) ? node.params.flatMap(bindingsOf) : [];
  if (DECLARATION_NODES.has(node.type)) return [...bindingsOf(node.id), ...params];
  if (node.type === 'CatchClause') return bindingsOf(node.param);
  if (node.type === 'ObjectExpression')
    return node.properties.filter(({ type, shorthand }) => type === 'Property' && !shorthand).flatMap(keyOf);
  if (MEMBER_NODES.has(node.type)) return [...keyOf(node), ...params];
  return params;
}

function keyOf({ key, computed }) {
  return !computed && (key.type === 'Identifier' || key.type === 'PrivateIdentifier') ? [key] : [];
}

/** Returns the identifiers that a pattern binds. */
function bindingsOf(pattern) {
  switch (pattern?.type) {
    case 'Identifier':
      return [pattern];
    case 'ObjectPattern':
      return pattern.properties.flatMap((property) => bindingsOf(property.argument ?? property.value));
    case 'ArrayPattern':
      return pattern.elements.flatMap(bindingsOf);
    case 'AssignmentPattern':
      return bindingsOf(pattern.left);
    case 'RestElement':
      return bindingsOf(pattern.argument);
    case 'TSParameterProperty':
      return bindingsOf(pattern.parameter);
    default:
      return [];
  }
}

/** Calls `see` for a node and everything below it. */
function visit(node, see) {
  if (Array.isArray(node)) {
    for (const item of node) visit(item, see);
    return;
  }
  if (typeof node?.type !== 'string') return;
  see(node);
  for (const value of Object.values(node)) if (typeof value === 'object' && value !== null) visit(value, see);
}

/** Returns a function from an offset in the text to its line, counted from 1. */
export function lineFinder(text) {
  const ends = [...text.matchAll(/\n/g)].map(({ index }) => index);
  return (offset) => {
    let [low, high] = [0, ends.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (ends[middle] < offset) low = middle + 1;
      else high = middle;
    }
    return low + 1;
  };
}
