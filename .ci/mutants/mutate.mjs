// The mutants of a source: each changes one condition, boundary, awaited call or constant.
import { parsers } from 'prettier/plugins/babel'

const boundaries = { '<': '<=', '<=': '<', '>': '>=', '>=': '>', '===': '!==', '!==': '===' }
const calculations = { '+': '-', '-': '+', '*': '/', '/': '*' }

/**
 * The mutants of the text of a module. Each has `start`, `end` and `line` of an expression, and the
 * text that takes its place.
 */
export async function mutantsOf(text) {
  const mutants = []
  const add = ({ start, end, loc }, ...replacements) => {
    for (const replacement of replacements) mutants.push({ start, end, line: loc.start.line, replacement })
  }
  visit(await parse(text), (node) => change(node, text, add))
  return mutants
}

async function parse(text) {
  return parsers['babel-ts'].parse(text, {})
}

/** Calls `see` for each node that exists at run time. */
function visit(node, see) {
  if (Array.isArray(node)) for (const each of node) visit(each, see)
  if (typeof node?.type !== 'string' || isLeftOut(node)) return
  see(node)
  for (const [name, child] of Object.entries(node)) {
    if (name === 'key' && !node.computed) continue
    if (!/comments|tokens|typeAnnotation|typeParameters|typeArguments|returnType/i.test(name)) visit(child, see)
  }
}

/** Types, imports, and lines of the log that nobody relies on. */
function isLeftOut({ type, callee }) {
  if (/^TS(?:As|NonNull|Satisfies)Expression$/.test(type)) return false
  return /^TS|^Import|^Export(?:All)/.test(type) || callee?.property?.name === 'debug'
}

function change(node, text, add) {
  const of = ({ start, end }) => text.slice(start, end)
  const { type, operator, test, left, right } = node
  if (type === 'IfStatement' || type === 'ConditionalExpression') add(test, 'true', 'false')
  if (type === 'WhileStatement') add(test, 'false')
  if (type === 'LogicalExpression') {
    if (operator !== '??') add(node, `(${of(left)}) ${operator === '&&' ? '||' : '&&'} (${of(right)})`, of(right))
    add(node, of(left))
  }
  if (type === 'UnaryExpression' && operator === '!') add(node, of(node.argument))
  if (type === 'BinaryExpression') {
    const other = boundaries[operator] ?? (isText(node) ? undefined : calculations[operator])
    if (other !== undefined) add(node, `(${of(left)}) ${other} (${of(right)})`)
  }
  if (type === 'AwaitExpression') add(node, of(node.argument))
  if (type === 'ExpressionStatement' && isCall(node.expression)) add(node.expression, 'undefined')
  if (type === 'BooleanLiteral') add(node, String(!node.value))
  if (type === 'NumericLiteral') add(node, node.value === 0 ? '1' : node.value === 1 ? '0' : `${node.value} * 2`)
  if (type === 'ArrayExpression') for (const each of node.elements) if (each?.type === 'StringLiteral') add(each, "''")
}

function isCall(node) {
  return /^(?:Await|(?:Optional)?Call)Expression$/.test(node.type) && !isLeftOut(node)
}

/** Whether `+` concatenates strings for sure. */
function isText({ type, operator, left, right }) {
  return /^(?:String|Template)Literal$/.test(type) || (operator === '+' && (isText(left) || isText(right)))
}

/**
 * The text of a module with all these mutants, each behind a call of `isMutant` with its number.
 */
export async function withMutants(text, mutants) {
  const statements = []
  visit(await parse(text), ({ type, expression }) => {
    if (type === 'ExpressionStatement') statements.push({ start: expression.start, end: expression.end })
  })
  const isNeeded = ({ start }) => mutants.some((mutant) => mutant.start === start)
  const places = [...mutants, ...statements.filter(isNeeded)]
  return switched(
    text,
    places.sort((one, two) => one.start - two.start || two.end - one.end),
  )
}

/** The text from `start` to `end`, with the mutants at these places. A statement has no number. */
function switched(text, places, start = 0, end = text.length) {
  let result = ''
  let at = start
  for (let left = places; left.length > 0;) {
    const [{ start: from, end: to }] = left
    const isHere = (place) => place.start === from && place.end === to
    const inside = left.filter((place) => place.end <= to)
    const here = inside.filter(isHere)
    const original = switched(
      text,
      inside.filter((place) => !isHere(place)),
      from,
      to,
    )
    const mutants = here.filter(({ number }) => number !== undefined)
    const switches = mutants.map(({ number, replacement }) => `isMutant(${number}) ? (${replacement}) : `)
    // Without a semicolon before it, a parenthesis at the beginning of a statement would be a call.
    const prefix = mutants.length < here.length ? 'void ' : ''
    result += `${text.slice(at, from)}${prefix}(${switches.join('')}(${original}))`
    at = to
    left = left.slice(inside.length)
  }
  return result + text.slice(at, end)
}
