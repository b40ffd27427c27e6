import { durationText } from '../../../src/entries/import.ts'
import type { Notes } from '../common/notes.ts'
import { denyingRule, freeName, type Rule } from '../common/written-config.ts'
import { type Directive, shownSection } from './apache-file.ts'
import { restrictsFiles } from './apache-sections.ts'
import { type Site, valueOf } from './apache-site.ts'

interface Upstream {
  readonly name: string
  readonly path: string
  readonly settings: object
}

/**
 * The applications that ProxyPass names, with names that are not taken. `closed` has rules for
 * paths that Apache does not forward.
 */
export function upstreamsOf(
  site: Site,
  taken: Set<string>,
  from: Notes,
): { readonly upstreams: readonly Upstream[]; readonly closed: readonly Rule[] } {
  const upstreams: Upstream[] = []
  const closed: Rule[] = []
  const close = (path: string, reason: string) => closed.push(denyingRule(`${path.replace(/\/$/, '')}/*`, reason))
  for (const [path = '', target = '', ...options] of passesOf(site.directives, from)) {
    const isTaken = (other: string) => `${path.replace(/\/$/, '')}/`.startsWith(other)
    if (!/^(?:\/[\w.~-]+)*\/?$/.test(path)) {
      from.deny(`ProxyPass ${path}`, 'an upstream needs a plain path; decide which upstream these paths have')
      continue
    }
    // The first ProxyPass that matches wins; in the gateway, the longest path.
    const earlier = upstreams.find((each) => isTaken(each.path))
    if (earlier !== undefined) {
      from.lost(`ProxyPass ${path}`, `an earlier ProxyPass has all of its paths: ${earlier.path}`)
      continue
    }
    const settings = target === '!' ? undefined : settingsFor(path, target, site, from)
    if (settings === undefined)
      close(path, target === '!' ? 'Apache does not forward these paths.' : `Decide which upstream has ${path}.`)
    else
      upstreams.push({
        name: nameFor(target, site, taken),
        path: path.endsWith('/') ? path : `${path}/`,
        settings: { ...settings, ...limitsOf(options, from) },
      })
  }
  if (upstreams.length === 0) {
    const text =
      'Apache itself serves the site: let it listen on an address that only the gateway reaches, and write that as url'
    if (restrictsFiles(site.directives))
      from.deny('ProxyPass', `${text}; <Directory>, <Files> and .htaccess restrict its files: write that as rules`)
    else from.decide('ProxyPass', text)
    upstreams.push({ name: nameFor('', site, taken), path: '/', settings: { url: 'http://127.0.0.1:8081' } })
  }
  return { upstreams, closed }
}

/** The arguments of each ProxyPass; in a <Location>, its path comes first. */
function passesOf(directives: readonly Directive[], from: Notes): readonly (readonly string[])[] {
  return directives.flatMap((directive) => {
    const { name, args, children = [] } = directive
    if (name === 'proxypassmatch')
      from.deny('ProxyPassMatch', 'rules use paths, not regular expressions; decide which upstream these paths have')
    if (name === 'proxypass') return [args]
    const inSection = children.filter((child) => /^proxypass(?:match)?$/.test(child.name))
    const isPath = name === 'location' && args[0] !== '~'
    if (inSection.some((child) => child.name === 'proxypassmatch') || (inSection.length > 0 && !isPath))
      from.deny(`ProxyPass in ${shownSection(directive)}`, 'decide which upstream these paths have')
    if (!isPath) return []
    return children.flatMap((child) => (child.name === 'proxypass' ? [[args[0] ?? '', ...child.args]] : []))
  })
}

function settingsFor(path: string, target: string, site: Site, from: Notes): object | undefined {
  const shown = target.replace(/\/\/.*@/, '//…@')
  const host_header = valueOf(site, 'ProxyPreserveHost')?.toLowerCase() === 'on' ? undefined : 'upstream'
  const balancer = /^balancer:\/\/([^/]+)(\/.*)?$/.exec(target)
  if (balancer !== null) {
    const members = membersOf(balancer[1] ?? '', site.directives)
    if (members.length > 0 && (balancer[2] ?? '/') === path)
      return { targets: members.map((url) => ({ url })), host_header }
  }
  const [, socket] = /^unix:([^|]+)\|http:/.exec(target) ?? []
  if (socket !== undefined) return { url: `unix:${socket}`, host_header }
  const url = URL.canParse(target) ? new URL(target.replace(/^ws(s?):/, 'http$1:')) : undefined
  if (url === undefined || !/^https?:$/.test(url.protocol)) {
    from.deny(`ProxyPass ${path}`, `${shown} is no http or https URL; decide which upstream these paths have`)
    return undefined
  }
  const [own, theirs] = [path.replace(/\/$/, ''), url.pathname.replace(/\/$/, '')]
  const isKept = own === theirs
  if (path.endsWith('/') !== url.pathname.endsWith('/') && path !== '/')
    from.changed(
      `ProxyPass ${path}`,
      `one of ${path} and ${shown} ends with a slash; here the path is replaced segment by segment`,
    )
  return {
    url: isKept || theirs === '' ? url.origin : `${url.origin}${theirs}`,
    ...(!isKept && own !== '' && { strip_path: true }),
    host_header,
  }
}

function membersOf(balancer: string, directives: readonly Directive[]): readonly string[] {
  const section = directives.find(({ name, args }) => name === 'proxy' && args[0] === `balancer://${balancer}`)
  return (section?.children ?? []).flatMap(({ name, args }) => (name === 'balancermember' ? [args[0] ?? ''] : []))
}

function limitsOf(options: readonly string[], from: Notes): object {
  const settings: Record<string, string> = {}
  for (const option of options) {
    const [name = '', value = ''] = option.split('=')
    const isSeconds = /^\d+$/.test(value) && Number(value) > 0
    if (name === 'timeout' && isSeconds) settings['response_timeout'] = durationText(Number(value) * 1000)
    else if (name === 'connectiontimeout' && isSeconds) settings['connect_timeout'] = durationText(Number(value) * 1000)
    else if (
      /^(?:keepalive|retry|nocanon|upgrade|enablereuse|disablereuse|flushpackets|max|min|smax|ttl|acquire|ping|iobuffersize)$/.test(
        name,
      )
    )
      from.unneeded(`ProxyPass ${name}`, 'the gateway keeps connections, streams, and forwards the path as it is')
    else from.lost(`ProxyPass ${name}`, 'it is not translated')
  }
  return settings
}

function nameFor(target: string, { externalUrl }: Site, taken: Set<string>): string {
  const host = URL.canParse(target) ? (new URL(target).hostname.split('.')[0] ?? '') : ''
  const site = new URL(externalUrl).hostname.split('.')[0] ?? ''
  const base = [host, site].find((each) => /^[a-z][\w-]*$/i.test(each) && each !== 'localhost') ?? 'app'
  const name = freeName(base, (each) => taken.has(each))
  taken.add(name)
  return name
}
