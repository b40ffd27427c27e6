// The types of the settings as they are written in YAML, generated from the JSON Schema. Prints the
// source, or writes it to src/config/settings.ts with --write. `npm run reference` calls it.
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { format, resolveConfig } from 'prettier'
import { root } from './prepare.mjs'

const file = join(root, 'src', 'config', 'settings.ts')
const schema = JSON.parse(readFileSync(join(root, 'schemas', 'gateway.schema.json'), 'utf8'))

const head = `// Generated from schemas/gateway.schema.json by \`npm run reference\`: do not edit.
// These types describe a document after validation. Invalid values have been reported and removed,
// so a required setting may be missing, and a list may have gaps. Defaults have been filled in.

import type { JsonValue } from '../core/claims.ts'

/** A list. An invalid entry leaves a gap, so that the other entries keep their index. */
export type List<T> = readonly (T | undefined)[]`

/** Comments wrap at 100 columns. */
const width = 100
/** Name of a type → its declaration, in the order of the schema. */
const declarations = new Map()

/** `per_client` → `PerClient` */
const pascal = (name) => name.replaceAll(/(?:^|_)([a-z])/g, (_, letter) => letter.toUpperCase())
const nameOfReference = ($ref) => $ref.replace('#/definitions/', '')
const literal = (value) => (typeof value === 'string' ? `'${value}'` : String(value))
const union = (types) => [...new Set(types)].join(' | ')

function comment(text, indent = '') {
  if (text === undefined) return ''
  const oneLine = `${indent}/** ${text} */`
  if (oneLine.length <= width) return `${oneLine}\n`
  const lines = ['']
  for (const word of text.split(' ')) {
    const longer = `${lines.at(-1)} ${word}`.trim()
    if (indent.length + 3 + longer.length <= width) lines[lines.length - 1] = longer
    else lines.push(word)
  }
  return [`${indent}/**`, ...lines.map((line) => `${indent} * ${line}`), `${indent} */\n`].join('\n')
}

/**
 * The TypeScript type of a part of the schema.
 * @param path the names on the way to it: a map of settings is named after them
 * @param description what the setting that holds this part says about it
 */
function typeOf(part, path, description = part.description) {
  if (part.$ref !== undefined) return typeOfDefinition(nameOfReference(part.$ref), description)
  if (part.const !== undefined) return literal(part.const)
  if (part.enum !== undefined) return union(part.enum.map(literal))
  const types = [part.type].flat().map((type) => {
    switch (type) {
      case 'string':
        return textType(part)
      case 'integer':
      case 'number':
        return 'number'
      case 'boolean':
      case 'null':
        return type
      case 'array':
        return `List<${typeOf(part.items, path)}>`
      case 'object':
        return mapType(part, path, description)
      default:
        throw new Error(`${path.join('.')}: a part of the schema needs a type`)
    }
  })
  return union(types)
}

/** A pattern such as `^auto$` allows one text only. */
function textType({ pattern }) {
  const only = /^\^(\w+)\$$/.exec(pattern ?? '')?.[1]
  return only === undefined ? 'string' : literal(only)
}

function mapType(part, path, description) {
  if (part.properties === undefined && part.then !== undefined) return typeOf(part.then, path)
  if (part.properties !== undefined) return declareMap(part, path, description)
  const members = part.additionalProperties === undefined ? 'JsonValue' : typeOf(part.additionalProperties, path)
  return `Readonly<Record<string, ${members}>>`
}

/** A map of settings has the name of its path, such as `LimitsPerClientSettings`. */
const nameOfMap = (path) => `${pascal(path.join('_')) || 'Gateway'}Settings`

function declareMap(part, path, description) {
  const name = nameOfMap(path)
  // Its place in the file is before the maps within it.
  declarations.set(name, '')
  const members = Object.entries(part.properties).map(([setting, written]) => {
    const hasDefault = written.default !== undefined
    const type = typeOf(written, [...path, setting])
    return `${comment(written.description, '  ')}  readonly ${/^\w+$/.test(setting) ? setting : `'${setting}'`}${hasDefault ? '' : '?'}: ${type}\n`
  })
  declarations.set(name, `${comment(description)}export interface ${name} {\n${members.join('')}}`)
  return name
}

const definitionTypes = new Map()

function typeOfDefinition(name, description) {
  const part = schema.definitions[name]
  const known = definitionTypes.get(name)
  if (known !== undefined) return known
  // A map that contains itself refers to its name.
  if (part.properties !== undefined) definitionTypes.set(name, nameOfMap([name]))
  const type = typeOf(part, [name], part.description ?? description)
  const isText = /^(?:string|number| \| )+$/.test(type)
  if (isText) declarations.set(pascal(name), `${comment(aboutText(part))}export type ${pascal(name)} = ${type}`)
  definitionTypes.set(name, isText ? pascal(name) : type)
  return definitionTypes.get(name)
}

/** A kind of text is described by its message for invalid ones. */
function aboutText({ errorMessage }) {
  const text = errorMessage.replace(/^must be /, '')
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}.`
}

/** The source of src/config/settings.ts. */
async function source() {
  declareMap(schema, [], schema.description)
  const style = await resolveConfig(file)
  const types = [...declarations.values()].join('\n\n')
  return format(`${head}\n\n${types}\n`, { ...style, parser: 'typescript' })
}

const text = await source()
if (process.argv.includes('--write')) writeFileSync(file, text)
else process.stdout.write(text)
