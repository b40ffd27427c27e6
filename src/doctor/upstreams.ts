import { networkInterfaces } from 'node:os'
import { isLoopback } from '../config/addresses.ts'
import type { UpstreamConfig } from '../config/model.ts'
import { portOf } from '../core/addresses.ts'
import { httpSchemeMismatch } from '../core/scheme-mismatch.ts'
import { addressesOf, ask, isPrivate, listens } from './connect.ts'
import { connectionAdvice } from './connection-advice.ts'
import { fault, type Finding, ok, warning } from './finding.ts'

/**
 * What there is to say of an application: whether it answers, and whether it can be reached around
 * the gateway. `outside`: the addresses of this machine by which others reach it.
 */
export async function upstreamFindings(upstream: UpstreamConfig, outside = outsideAddresses()): Promise<Finding[]> {
  const [reached, around] = await Promise.all([reachFinding(upstream), aroundFinding(upstream, outside)])
  return [reached, around]
}

async function reachFinding({ url, path, externalUrl, hostHeader, ca }: UpstreamConfig): Promise<Finding> {
  const id = 'upstream.reachable'
  const host = hostHeader === 'client' ? externalUrl.host : url.host
  const askBy = (method: string) => ask(new URL(path, url), { method, headers: { host }, ca })
  const head = await askBy('HEAD')
  // Some applications know GET only.
  const isUnknown = 'status' in head && (head.status === 501 || head.status === 405)
  const answer = isUnknown ? await askBy('GET') : head
  const method = isUnknown ? 'GET' : 'HEAD'
  if ('why' in answer) {
    const mismatch = await httpSchemeMismatch(answer.why, url)
    return fault(id, `${url.origin} cannot be asked: ${answer.why}`, {
      why: 'people who are signed in get 502',
      todo:
        mismatch === undefined
          ? connectionAdvice(answer.why, 'the url of the upstream', 'its ca_file')
          : `${mismatch} in the url of the upstream`,
    })
  }
  const what = `${url.origin} answers ${method} ${path} with ${answer.status} in ${Math.ceil(answer.ms)} ms`
  // Servers with TLS that read HTTP by mistake answer 400 without TLS.
  const mismatch = answer.status === 400 ? await httpSchemeMismatch('status 400', url) : undefined
  if (mismatch !== undefined)
    return fault(id, what, {
      why: 'nobody reaches the application',
      todo: `${mismatch} in the url of the upstream`,
    })
  if (answer.status < 500) return ok(id, what)
  return warning(id, what, {
    why: 'the application, or what stands before it, is in trouble, or does not know the Host it was asked for',
    todo: `look at its log; it was asked for the host ${host} (host_header)`,
  })
}

/**
 * Whoever reaches the application directly can say to be anybody. What can be seen from here:
 * whether one on this machine listens on an address by which others reach the machine, and whether
 * the address of another machine is one of the internet.
 */
async function aroundFinding({ url, externalUrl }: UpstreamConfig, outside: readonly string[]): Promise<Finding> {
  const id = 'upstream.around'
  const port = portOf(url)
  const why = 'whoever reaches the application without the gateway can say to be anybody, in its identity headers'
  const named = await addressesOf(url.hostname)
  const own = outside.filter((address) => named.includes(address))
  if (own.length === 0 && !named.some(isLoopback)) return elsewhereFinding(url, named, why)
  const candidates = own.length > 0 ? own : outside
  const tried = await Promise.all(candidates.map(async (address) => ((await listens(address, port)) ? [address] : [])))
  const open = tried.flat()
  if (open.length === 0)
    return ok(
      id,
      `port ${port} is open on no address of this machine that others can reach, as far as it could be tried`,
    )
  // On a machine where things are tried out, nothing is staked on it.
  const isTrial = isLoopback(externalUrl.hostname)
  return (isTrial ? warning : fault)(id, `port ${port} takes connections on ${open.join(', ')}, without the gateway`, {
    why: `${why}. It may be another program that listens there, and a firewall may be in front of it: that cannot be seen from here`,
    todo: 'let the application listen on 127.0.0.1 alone, or publish its port no more',
  })
}

/** A link-local address leads nowhere without its zone. */
function outsideAddresses(): string[] {
  const all = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? [])
  return all.filter(({ internal, scopeid = 0 }) => !internal && scopeid === 0).map(({ address }) => address)
}

function elsewhereFinding({ hostname, origin }: URL, addresses: readonly string[], why: string): Finding {
  const id = 'upstream.around'
  const isPublic = addresses.some((address) => !isPrivate(address))
  return warning(
    id,
    isPublic
      ? `${hostname} has an address of the internet: ${addresses.join(', ')}`
      : `${hostname} is another machine or container: who else reaches it cannot be seen from here`,
    {
      why,
      todo: `from where your users are, curl ${origin}/ has to fail; let a network policy or firewall admit the gateway alone`,
    },
  )
}
