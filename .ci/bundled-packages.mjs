// The packages whose code is in the bundle: their licenses, and the bill of materials.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const read = (...path) => JSON.parse(readFileSync(join(root, ...path), 'utf8'))

/** The folder of the package that a file belongs to, as package-lock.json writes it. */
const packageOf = (file) => /^(?:.*\/)?node_modules\/(?:@[^/]+\/)?[^/]+/.exec(file)?.[0]

/**
 * Reads what esbuild says about a bundle. Returns folder of a package → folders of the packages
 * that it loads. The folder of the gateway itself is ''.
 */
export function packagesIn({ inputs, outputs }) {
  const files = Object.values(outputs).flatMap((output) => Object.entries(output.inputs))
  const used = new Set(files.flatMap(([file, { bytesInOutput }]) => (bytesInOutput > 0 ? [file] : [])))
  const packages = new Map([...used].map((file) => [packageOf(file) ?? '', new Set()]))
  for (const file of used)
    for (const { path } of inputs[file].imports) {
      const [from, to] = [packageOf(file) ?? '', packageOf(path)]
      if (packages.has(to) && to !== from) packages.get(from).add(to)
    }
  return new Map([...packages].sort(([a], [b]) => (a < b ? -1 : 1)))
}

/** The terms of the MIT license, for packages that only name it. */
const mit = `Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated
documentation files (the "Software"), to deal in the Software without restriction, including without limitation
the rights to use, copy, modify, merge, publish, distribute, sublicense, and/or sell copies of the Software, and to
permit persons to whom the Software is furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all copies or substantial portions of the
Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE
WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR
COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR
OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.`

function licenseTexts(folder, { name, version, license, author }) {
  const files = readdirSync(join(root, folder)).filter((file) => /^(?:licen[cs]e|copying|notice)/i.test(file))
  if (files.length > 0) return files.map((file) => readFileSync(join(root, folder, file), 'utf8').trim())
  const owner = author?.name ?? author
  if (license !== 'MIT' || owner === undefined) throw new Error(`${name} ${version} has no file with its license.`)
  return [`Copyright ${owner}`, mit]
}

/** The texts that the licenses of the packages require to pass on. */
export function licenses(packages) {
  const texts = [...packages.keys()].filter(Boolean).map((folder) => {
    const manifest = read(folder, 'package.json')
    const { name, version, license } = manifest
    return [`${name} ${version} (${license})`, ...licenseTexts(folder, manifest)].join('\n\n')
  })
  const unique = [...new Set(texts)]
  const rule = `\n\n${'-'.repeat(80)}\n\n`
  return `${['Gatehouse contains code of these packages.', ...unique].join(rule)}\n`
}

const purl = (name, version) => `pkg:npm/${name.replace('@', '%40')}@${version}`

/** The packages in CycloneDX, with the hashes of package-lock.json. */
export function billOfMaterials(packages) {
  const locked = read('package-lock.json').packages
  const nameOf = (folder) => (folder === '' ? locked[''].name : folder.split('node_modules/').at(-1))
  const ref = (folder) => `${nameOf(folder)}@${locked[folder].version}`
  /** Two folders may hold one version of a package. */
  const once = (folders) => [...new Map(folders.map((folder) => [ref(folder), folder])).values()]
  const component = (folder) => {
    const { version, license } = locked[folder]
    return { 'bom-ref': ref(folder), name: nameOf(folder), version, licenses: [{ license: { id: license } }] }
  }
  const hashOf = ({ integrity }) => Buffer.from(integrity.replace('sha512-', ''), 'base64').toString('hex')
  const folders = once([...packages.keys()])
  return {
    $schema: 'http://cyclonedx.org/schema/bom-1.5.schema.json',
    bomFormat: 'CycloneDX',
    specVersion: '1.5',
    version: 1,
    metadata: { component: { type: 'application', ...component('') } },
    components: folders.filter(Boolean).map((folder) => ({
      type: 'library',
      ...component(folder),
      purl: purl(nameOf(folder), locked[folder].version),
      hashes: [{ alg: 'SHA-512', content: hashOf(locked[folder]) }],
    })),
    dependencies: folders.map((folder) => ({
      ref: ref(folder),
      dependsOn: once([...packages.get(folder)])
        .map(ref)
        .sort(),
    })),
  }
}
