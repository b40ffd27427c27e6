// What must be true before a release is built. Each check returns sentences: what is wrong, and
// what to do.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Ajv } from 'ajv'
import { parse } from 'yaml'
import { root } from '../prepare.mjs'
import { readChangelog } from './changelog.mjs'
import { runTool } from './run-tool.mjs'
import { compareNumbers, compareVersions, isVersion } from './versions.mjs'

const git = (...args) => runTool('git', args).trim()

/** The artefacts are those of a commit. */
function checkTree() {
  const changed = runTool('git', ['status', '--porcelain']).split('\n').filter(Boolean)
  if (changed.length === 0) return []
  return [
    `The tree has changes that are not committed: ${changed.map((line) => line.slice(3)).join(', ')}. Commit them.`,
  ]
}

function checkChangelog({ version }) {
  const sections = readChangelog().filter(({ title }) => title !== 'Unreleased')
  const section = sections.find(({ title }) => title === version)
  if (section === undefined || section.text === '')
    return [`CHANGELOG.md: there is no section "## ${version}". Write it.`]
  const faults = sections.flatMap(({ title }, index) => {
    const next = sections[index + 1]
    if (!isVersion(title)) return [`CHANGELOG.md: "${title}" is not a version, such as 1.2.3.`]
    if (next === undefined || !isVersion(next.title) || compareNumbers(title, next.title) > 0) return []
    return [`CHANGELOG.md: ${title} is above ${next.title}, but is not a later version.`]
  })
  if (sections[0].title !== version)
    faults.push(`The version goes backwards: package.json has ${version}, CHANGELOG.md has ${sections[0].title}.`)
  for (const part of ['Must read before upgrading', 'Security'])
    if (!section.text.includes(`### ${part}\n`)) faults.push(`CHANGELOG.md: ${version} has no part "### ${part}".`)
  return faults
}

/** What is harmless in a dry run, and an error at a tag. */
function checkUnreleased({ version, tag }) {
  const unreleased = readChangelog().find(({ title }) => title === 'Unreleased')
  const faults = []
  if (unreleased !== undefined && unreleased.text !== '')
    faults.push(`CHANGELOG.md: "Unreleased" has entries. Move them to the section "## ${version}".`)
  const commit = git('tag', '--list', tag) === '' ? undefined : git('rev-parse', `${tag}^{commit}`)
  if (commit !== undefined && commit !== git('rev-parse', 'HEAD'))
    faults.push(`${tag} is the tag of another commit. Set the next version: npm run release -- --set-version X.Y.Z`)
  return faults
}

/** SECURITY.md sends reporters without an account at GitHub to this address. */
function checkContact({ contact = '' }) {
  if (/^[^\s@]+@[^\s@]+\.[^\s@]+$/.test(contact) && !/\b(?:example|invalid|noreply)\b/.test(contact)) return []
  return ['package.json: bugs.email must be an address that reads reports of vulnerabilities. Set it.']
}

function checkOrder({ version }) {
  if (!isVersion(version)) return [`package.json: the version ${version} is not MAJOR.MINOR.PATCH, such as 1.2.3.`]
  const released = git('tag', '--list', 'v*')
    .split('\n')
    .map((tag) => tag.slice(1))
    .filter(isVersion)
  const later = released.filter((other) => compareNumbers(other, version) > 0)
  return later.map((other) => `The version goes backwards: package.json has ${version}, but v${other} is a tag.`)
}

function checkTag({ tag }, asked) {
  if (asked === undefined || asked === tag) return []
  return [`The tag is ${asked}, but package.json has the version of ${tag}. Tag the commit that sets the version.`]
}

const yaml = (path) => parse(readFileSync(join(root, path), 'utf8'))
const filesIn = (folder) => readdirSync(join(root, folder)).map((name) => `${folder}/${name}`)

/** Follows a path through a JSON Schema. An object without `properties` may have any. */
function isDescribed(schema, [name, ...rest]) {
  if (name === undefined || schema.properties === undefined) return true
  return schema.properties[name] !== undefined && isDescribed(schema.properties[name], rest)
}

/** Every value that a template reads or a file sets must be one that the chart has. */
function checkCharts() {
  const schema = JSON.parse(readFileSync(join(root, 'charts/gatehouse/values.schema.json'), 'utf8'))
  const validate = new Ajv({ allErrors: true, strict: false }).compile(schema)
  const files = [
    ...['charts/gatehouse/values.yaml', ...filesIn('charts/gatehouse/ci')].map((path) => [path, yaml(path)]),
    ['charts/orders/values.yaml', yaml('charts/orders/values.yaml').gatehouse],
  ]
  const invalid = files.flatMap(([path, values]) =>
    validate(values)
      ? []
      : validate.errors.map(({ instancePath, message, params }) => {
          const name = params.additionalProperty === undefined ? '' : ` (${params.additionalProperty})`
          return `${path}: ${instancePath || 'the top level'} ${message}${name}.`
        }),
  )
  const unknown = [
    ['gatehouse', (parts) => isDescribed(schema, parts)],
    ['orders', ([name]) => name in yaml('charts/orders/values.yaml')],
  ].flatMap(([chart, isKnown]) =>
    filesIn(`charts/${chart}/templates`).flatMap((path) =>
      [...readFileSync(join(root, path), 'utf8').matchAll(/\.Values\.([\w.]+)/g)].flatMap(([, name]) =>
        isKnown(name.split('.')) ? [] : [`${path}: the chart has no value ${name}.`],
      ),
    ),
  )
  return [...invalid, ...unknown]
}

/**
 * @param asked the tag of a release, or undefined in a dry run
 * @returns `errors`, and `warnings` that become errors at a tag
 */
export function checkRelease(identity, asked) {
  const later = [...checkUnreleased(identity), ...checkContact(identity)]
  const errors = [
    ...checkTree(),
    ...checkTag(identity, asked),
    ...checkOrder(identity),
    ...checkChangelog(identity),
    ...compareVersions(identity),
    ...checkCharts(),
  ]
  return asked === undefined ? { errors, warnings: later } : { errors: [...errors, ...later], warnings: [] }
}
