// Rules of this repository, as a plugin of oxlint: .oxlintrc.json names it. Each rule can fix what
// it reports (`npm run lint:fix`).

/** Node's modules, packages, other folders, this folder: the order of the imports of a file. */
const kinds = [/^node:/, /^[^.]/, /^\.\.\//, /^\.\//]

/** Compares two imports by the kind of their module, then by its name. */
function compareImports(left, right) {
  const kindOf = ({ source }) => kinds.findIndex((kind) => kind.test(source.value))
  return (
    kindOf(left) - kindOf(right) ||
    Number(left.source.value > right.source.value) - Number(left.source.value < right.source.value)
  )
}

const importOrder = {
  meta: { type: 'layout', fixable: 'code', schema: [] },
  create: (context) => ({
    Program(program) {
      const imports = program.body.filter(({ type }) => type === 'ImportDeclaration')
      const sorted = imports.toSorted(compareImports)
      const wrong = imports.findIndex((node, index) => node !== sorted[index])
      if (wrong < 0) return
      const text = context.sourceCode.getText()
      const between = imports.slice(1).map((node, index) => text.slice(imports[index].range[1], node.range[0]))
      context.report({
        node: imports[wrong],
        message: `"${sorted[wrong].source.value}" comes before "${imports[wrong].source.value}": node:, packages, other folders, this folder; each by name.`,
        // Imports with a comment or code between them are left for a person.
        fix: between.every((gap) => gap.trim() === '')
          ? (fixer) =>
              fixer.replaceTextRange(
                [imports[0].range[0], imports.at(-1).range[1]],
                sorted.map((node) => text.slice(...node.range)).join('\n'),
              )
          : null,
      })
    },
  }),
}

/** Tables, examples and directives: their lines mean something, so that a person wraps them. */
const keepsItsLines = /^(?:[*|#>]|\d+\. |\s{2}|[\w-]+-(?:disable|ignore|expect)|```)/

/** Tags and list items begin a paragraph of their own. */
const beginsParagraph = /^(?:@\w|- )/

/**
 * Words in lines of at most `width` columns. The lines of a list item after the first are indented.
 */
function wrap(words, width) {
  const indent = words[0] === '-' ? '  ' : ''
  const lines = ['']
  for (const word of words) {
    const line = lines.at(-1)
    if (line === '') lines[lines.length - 1] = word
    else if (line.length + 1 + word.length <= width) lines[lines.length - 1] = `${line} ${word}`
    else lines.push(`${indent}${word}`)
  }
  return lines
}

/**
 * The lines of a comment with the paragraphs wrapped that are too wide; `undefined` when one of
 * these keeps its lines.
 */
function rewrap(lines, width) {
  const paragraphs = [[]]
  for (const line of lines) {
    if (line === '' || paragraphs.at(-1)[0] === '' || beginsParagraph.test(line)) paragraphs.push([])
    paragraphs.at(-1).push(line)
  }
  const wrapped = paragraphs.map((paragraph) => {
    if (paragraph.every((line) => line.length <= width)) return paragraph
    if (paragraph.some((line) => keepsItsLines.test(line))) return undefined
    return wrap(paragraph.join(' ').split(/\s+/), width)
  })
  return wrapped.includes(undefined) ? undefined : wrapped.flat()
}

/**
 * Comments that have lines of their own: JSDoc blocks, and `//` comments that follow each other at
 * one indentation.
 */
function commentBlocks(sourceCode) {
  const blocks = []
  for (const comment of sourceCode.getAllComments()) {
    const { line, column } = comment.loc.start
    if (sourceCode.lines[line - 1].slice(0, column).trim() !== '') continue
    if (sourceCode.lines[comment.loc.end.line - 1].slice(comment.loc.end.column).trim() !== '') continue
    const last = blocks.at(-1)
    const goesOn =
      last?.type === 'Line' && comment.type === 'Line' && last.column === column && last.end.loc.end.line === line - 1
    if (goesOn) last.end = comment
    else blocks.push({ type: comment.type, column, start: comment, end: comment })
  }
  return blocks
}

const commentLength = {
  meta: { type: 'layout', fixable: 'whitespace', schema: [{ type: 'integer' }] },
  create: (context) => ({
    Program() {
      const [max] = context.options
      const { sourceCode } = context
      for (const { type, column, start, end } of commentBlocks(sourceCode)) {
        const lines = sourceCode.lines.slice(start.loc.start.line - 1, end.loc.end.line)
        if (lines.every((line) => line.length <= max)) continue
        const indent = ' '.repeat(column)
        const prefix = type === 'Line' ? '//' : ' *'
        const texts = lines.map((line) =>
          line
            .trim()
            .replace(type === 'Line' ? /^\/\/ ?/ : /^(?:\/\*\*|\*(?!\/)) ?/, '')
            .replace(type === 'Line' ? /$^/ : /\s*\*\/$/, ''),
        )
        // A block begins and ends with lines of their own.
        if (type === 'Block' && texts[0] === '') texts.shift()
        if (type === 'Block' && texts.at(-1) === '') texts.pop()
        const wrapped = rewrap(texts, max - column - prefix.length - 1)
        const body = wrapped?.map((line) => `${indent}${prefix} ${line}`.trimEnd()).join('\n')
        context.report({
          loc: { start: start.loc.start, end: end.loc.end },
          message: `A line of this comment has more than ${max} columns.`,
          fix:
            body === undefined || (type === 'Block' && !start.value.startsWith('*'))
              ? null
              : (fixer) =>
                  fixer.replaceTextRange(
                    [start.range[0], end.range[1]],
                    type === 'Line' ? body.slice(column) : `/**\n${body}\n${indent} */`,
                  ),
        })
      }
    },
  }),
}

/** What the comment of a constant says about its unit, and how its name ends then. */
const units = [
  { ending: 'Ms', said: /\b[Ii]n ms\b/ },
  { ending: 'Bytes', said: /\b[Ii]n bytes\b/ },
]

/** Whether an expression is made of numbers only, such as `5 * 60 * 1000`. */
function isNumeric(node) {
  if (node?.type === 'BinaryExpression') return isNumeric(node.left) && isNumeric(node.right)
  return node?.type === 'Literal' && typeof node.value === 'number'
}

/** The name of a numeric constant says its unit, if its comment does. */
const unitInName = {
  meta: { type: 'suggestion', schema: [] },
  create: (context) => ({
    Program(program) {
      for (const statement of program.body) {
        const { declarations: [constant] = [] } = statement.declaration ?? statement
        const name = constant?.id?.name
        if (name === undefined || !isNumeric(constant.init)) continue
        const comment = context.sourceCode.getCommentsBefore(statement).at(-1)?.value ?? ''
        const text = context.sourceCode.getText().slice(...constant.init.range)
        const unit =
          units.find(({ said }) => said.test(comment)) ??
          (/\* 1024\b/.test(text) && !comment.includes('characters') ? units[1] : undefined)
        if (unit !== undefined && !name.endsWith(unit.ending))
          context.report({
            node: constant.id,
            message: `The name of a constant in this unit ends with "${unit.ending}".`,
          })
      }
    },
  }),
}

/** The expression without `as T` and `satisfies T`. */
function bare(node) {
  return node?.type === 'TSAsExpression' || node?.type === 'TSSatisfiesExpression' ? bare(node.expression) : node
}

/**
 * An object literal has the members of every object: `{}['constructor']` is a function. So a table
 * that any name may be looked up in is a `Map`, has no prototype, or `Object.hasOwn` precedes.
 */
const namesFromOutside = {
  meta: { type: 'problem', schema: [] },
  create: (context) => {
    const text = context.sourceCode.getText()
    const tables = new Set()
    const reads = []
    return {
      VariableDeclarator({ id, init }) {
        if (id.type !== 'Identifier' || bare(init)?.type !== 'ObjectExpression') return
        const type = id.typeAnnotation === undefined ? '' : text.slice(id.range[0], init.range[0])
        const isEmpty = bare(init).properties.length === 0 && !/:/.test(type)
        if (isEmpty || /\bRecord<string,/.test(type)) tables.add(id.name)
      },
      MemberExpression(node) {
        const { computed, object, property, parent } = node
        const isRead = parent.type !== 'AssignmentExpression' || parent.left !== node || parent.operator !== '='
        if (computed && isRead && object.type === 'Identifier' && property.type !== 'Literal') reads.push(node)
      },
      'Program:exit'() {
        for (const node of reads)
          if (tables.has(node.object.name) && !text.includes(`Object.hasOwn(${node.object.name}, `))
            context.report({
              node,
              message: `"${node.object.name}" has members of every object, such as "constructor": use a Map, Object.create(null) or Object.hasOwn.`,
            })
      },
    }
  },
}

export default {
  meta: { name: 'gatehouse' },
  rules: {
    'import-order': importOrder,
    'comment-length': commentLength,
    'unit-in-name': unitInName,
    'names-from-outside': namesFromOutside,
  },
}
