// Every place that names the version or the owner. The same list is compared at a release and
// written by `npm run release -- --set-version`.
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from '../prepare.mjs'
import { runTool } from './run-tool.mjs'

const number = String.raw`\d+\.\d+\.\d+`

/** Whether a text is MAJOR.MINOR.PATCH. */
export const isVersion = (text) => new RegExp(`^${number}$`).test(text)

/** Files with a version of their own: each expression must match. */
const fixed = [
  ['package.json', /^ {2}"version": "(.*)"/gm],
  ['package-lock.json', /"name": "@[\w-]+\/gatehouse",\n +"version": "(.*)"/g],
  ['src/core/version.ts', /version = '(.*)'/g],
  ['Dockerfile', /^ARG VERSION=(.*)$/gm],
  ['schemas/gateway.schema.json', /"\$id": "https:.*\/v([^/]*)\/schemas\/gateway\.schema\.json"/g],
  ['schemas/audit-event.schema.json', /"\$id": "https:.*\/v([^/]*)\/schemas\/audit-event\.schema\.json"/g],
  ['charts/gatehouse/Chart.yaml', /^(?:appV|v)ersion: (.*)$/gm],
  ['charts/gatehouse/templates/_helpers.tpl', /gatehouse, tag: ([^,]*)/g],
  ['charts/orders/Chart.yaml', /^(?: {4}v|appV|v)ersion: (.*)$/gm],
]

/** How documentation, examples and charts name an artefact with its version. */
const mentioned = [
  new RegExp(String.raw`gatehouse(?:-[a-z]+)*[:@_-]v?(${number})`, 'g'),
  new RegExp(String.raw`-chart-(${number})`, 'g'),
  new RegExp(String.raw`gatehouse/(?:blob/|releases/download/)?v(${number})`, 'g'),
  new RegExp(String.raw`(?:--version|refs/tags/v|git tag -s v) ?(${number})`, 'g'),
]

/** Where a person finds a name that contains the owner. */
const owners = [
  /(?:github\.com|raw\.githubusercontent\.com|ghcr\.io)\/([\w-]+)\/(?:charts\/)?gatehouse\b/g,
  /@([\w-]+)\/gatehouse\b/g,
  /\b([\w-]+)-gatehouse-\d+\.\d+\.\d+\.tgz/g,
  /@([\w-]+)\/maintainers\b/g,
]

const read = (path) => readFileSync(join(root, path), 'utf8')

/** The texts that users read. The changelog keeps the versions of earlier releases. */
function pages() {
  const folders = ['docs', 'examples', 'charts', 'schemas', 'README.md', 'SECURITY.md', 'gateway.example.yaml']
  const names = runTool('git', ['ls-files', '-z', '--', ...folders]).split('\0')
  return names.filter((name) => /\.(?:md|ya?ml|json|tpl|txt|service)$/.test(name))
}

function differences(path, expressions, expected, what) {
  const text = read(path)
  return expressions.flatMap((expression) =>
    [...text.matchAll(expression)].flatMap(({ 1: found, index, 0: all }) => {
      if (found === expected) return []
      const line = text.slice(0, index + all.indexOf(found)).split('\n').length
      return [`${path}:${line}: ${what} is ${found}, but package.json has ${expected}.`]
    }),
  )
}

/** @returns a sentence for each place that disagrees with package.json */
export function compareVersions({ version, owner, packageName }) {
  const absent = fixed.flatMap(([path, expression]) =>
    read(path).search(expression) === -1 ? [`${path}: the version is missing.`] : [],
  )
  const names = packageName === `@${owner}/gatehouse` ? [] : [`package.json: name must be @${owner}/gatehouse.`]
  return [
    ...absent,
    ...names,
    ...fixed.flatMap(([path, expression]) => differences(path, [expression], version, 'the version')),
    ...pages().flatMap((path) => differences(path, mentioned, version, 'the version')),
    ...[...pages(), 'package.json', '.github/CODEOWNERS', 'CHANGELOG.md', 'CONTRIBUTING.md', 'Dockerfile'].flatMap(
      (path) => differences(path, owners, owner, 'the owner'),
    ),
  ]
}

/** Writes another version in every place. */
export function setVersion(version) {
  const places = [
    ...fixed.map(([path, expression]) => [path, [expression]]),
    ...pages().map((path) => [path, mentioned]),
  ]
  for (const [path, expressions] of places) {
    const before = read(path)
    const replaced = expressions.reduce(
      (text, expression) => text.replaceAll(expression, (all, found) => all.replace(found, version)),
      before,
    )
    if (replaced !== before) writeFileSync(join(root, path), replaced)
  }
}

/**
 * @returns a negative number when the first version is the lower one; both are MAJOR.MINOR.PATCH
 */
export function compareNumbers(a, b) {
  const [left, right] = [a, b].map((version) => version.split('.').map(Number))
  return left[0] - right[0] || left[1] - right[1] || left[2] - right[2]
}
