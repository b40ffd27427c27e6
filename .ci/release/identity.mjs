// Who publishes what: everything is derived from package.json.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from '../prepare.mjs'

/** @returns name, version, and the addresses that follow from `repository` of package.json */
export function readIdentity() {
  const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  const found = /^git\+https:\/\/github\.com\/([\w-]+)\/([\w.-]+)\.git$/.exec(manifest.repository?.url)
  if (found === null) throw new Error('package.json: repository.url must be git+https://github.com/OWNER/NAME.git.')
  const [, owner, repository] = found
  const url = `https://github.com/${owner}/${repository}`
  return {
    version: manifest.version,
    tag: `v${manifest.version}`,
    description: manifest.description,
    license: manifest.license,
    /** The oldest version of Node.js that is supported. */
    nodeVersion: /\d+\.\d+\.\d+/.exec(manifest.engines.node)[0],
    packageName: manifest.name,
    owner,
    repository,
    url,
    /**
     * Where vulnerabilities can be reported without an account at GitHub. Absent until it is set.
     */
    contact: manifest.bugs?.email,
    /** A file of the tagged commit, for programs. */
    rawUrl: `https://raw.githubusercontent.com/${owner}/${repository}/v${manifest.version}`,
    image: `ghcr.io/${owner}/${repository}`,
  }
}
