import { networkInterfaces } from 'node:os'
import {
  AddressText,
  checkHealth,
  connectionAdvice,
  connectTo,
  createResolver,
  findForm,
  hasDirective,
  type HealthCheckConfig,
  httpSchemeMismatch,
  isLoopback,
  mcpRevision,
  pauses,
  portOf,
  reason,
  resolveTargets,
  type TargetConfig,
  targetName,
  toolCall,
  type UpstreamConfig,
} from '../../src/entries/doctor.ts'
import { addressesOf, isPrivate, listens, request, type RequestOptions } from './connect.ts'
import { fault, type Finding, found, ok, warning } from './finding.ts'

/**
 * The findings about an upstream: whether it responds, and whether it is reachable without the
 * gateway. `outside`: the addresses at which others reach this machine.
 */
export async function upstreamFindings(upstream: UpstreamConfig, outside = outsideAddresses()): Promise<Finding[]> {
  const targets = await targetsOf(upstream)
  if (targets instanceof Error)
    return [
      fault('upstream.resolved', `${targets.message}`, {
        why: 'without an address, signed-in people get 502',
        todo: 'check the name in targets.resolve, and that its DNS servers can be reached from here',
      }),
    ]
  const alone = targets.map((target) => ({ ...upstream, url: target.url, targets: [target] }))
  const isHttp1 = upstream.protocol === 'http1'
  const reach = isHttp1 ? reachableFinding : connectedFinding
  const why =
    targets.length === 1 ? 'signed-in people get 502' : 'only the other targets get requests; without one, 502'
  const about = alone.map((each) => Promise.all([reach(each, why), bypassFinding(each, outside)]))
  const pages = alone
    .slice(0, isHttp1 ? 1 : 0)
    .map((each) =>
      Promise.all(
        [addressesFinding, framesFinding, loopFinding, mcpFinding, signInFinding].map((finding) => finding(each)),
      ),
    )
  const health = healthFindings(upstream, alone)
  return found(...(await Promise.all(about)).flat(), ...(await health), ...(await Promise.all(pages)).flat())
}

/** How many targets of a name are examined. */
const maxTargets = 16

/** The targets of an upstream; an error when its name has no address. */
async function targetsOf({ targets, resolve }: UpstreamConfig): Promise<readonly TargetConfig[] | Error> {
  if (resolve === undefined) return targets
  try {
    return (await resolveTargets(resolve, createResolver(resolve))).slice(0, maxTargets)
  } catch (error) {
    return new Error(reason(error), { cause: error })
  }
}

/** How much of the first page is examined, in bytes. */
const pageBytes = 256 * 1024

/**
 * An application that writes its own address into its pages sends browsers around the gateway, or
 * to an address that they cannot reach. This finds nothing if the first page is a redirect, or is
 * only for signed-in people.
 */
async function addressesFinding(upstream: UpstreamConfig): Promise<Finding | undefined> {
  const { name, url, path, alsoKnownAs, externalUrl, rewriteContent } = upstream
  if (rewriteContent) return undefined
  const first = firstPage(upstream)
  const publicUrl = externalUrl.origin + path.replace(/\/$/, '')
  const headers = { host: hostFor(upstream), accept: 'text/html', 'accept-encoding': 'identity' }
  const page = await request(first, { method: 'GET', headers, ...wayTo(upstream), contentBytes: pageBytes })
  if (!('status' in page) || page.content === undefined) return undefined
  const own = [url.origin, ...alsoKnownAs].filter((origin) => origin !== externalUrl.origin)
  const twin = externalUrl.protocol === 'https:' ? [`http://${externalUrl.host}`] : []
  const pairs = [...own, ...twin].map((from) => ({ from, to: externalUrl.origin, base: '', publicBase: '' }))
  const count = pairs.length === 0 ? 0 : new AddressText(pairs, url.protocol).count(page.content)
  if (count === 0) return undefined
  return warning(
    'upstream.addresses',
    `the application writes its own address ${count === 1 ? 'once' : `${count} times`} into ${first.pathname}, not ${publicUrl}`,
    {
      why: 'browsers cannot reach that address, or reach the application without the gateway',
      todo: `set the base URL of the application to ${publicUrl}, or set upstreams.${name}.rewrite_content`,
    },
  )
}

/**
 * An application whose own policy decides who may show it in a frame, against the configuration.
 */
async function framesFinding(upstream: UpstreamConfig): Promise<Finding | undefined> {
  const { name, responseHeaders } = upstream
  const { set, remove, defaults } = responseHeaders
  const wanted = defaults.find((field) => field.name === 'Content-Security-Policy')
  const isReplaced = [...Object.keys(set), ...remove].some((field) => field.toLowerCase() === policyField)
  if (wanted?.unless === undefined || isReplaced) return undefined
  const first = firstPage(upstream)
  const headers = { host: hostFor(upstream), accept: 'text/html' }
  const page = await request(first, { method: 'GET', headers, ...wayTo(upstream) })
  if (!('status' in page)) return undefined
  const own = [page.headers[policyField] ?? []].flat().join()
  const directive = hasDirective(own, wanted.unless) ? /frame-ancestors[^;,]*/i.exec(own)?.[0].trim() : undefined
  if (directive === undefined || directive === wanted.value) return undefined
  return warning(
    'upstream.frames',
    `the application sends "${directive}" itself, so "${wanted.value}" does not apply`,
    {
      why: 'browsers show the application in the frames that its own policy permits, and in no others',
      todo: `change the policy in the application, or name Content-Security-Policy in upstreams.${name}.response_headers.remove, which removes the rest of its policy too`,
    },
  )
}

/** An application that redirects requests to the address that they come from. */
async function loopFinding(upstream: UpstreamConfig): Promise<Finding | undefined> {
  const { externalUrl, path } = upstream
  const forwarded = { 'x-forwarded-proto': externalUrl.protocol.slice(0, -1), 'x-forwarded-host': externalUrl.host }
  const headers = { host: hostFor(upstream), accept: 'text/html', ...forwarded }
  const page = await request(firstPage(upstream), { method: 'GET', headers, ...wayTo(upstream) })
  // With a cookie, the next request may get another response.
  if (!('status' in page) || page.status < 300 || page.status >= 400 || page.headers['set-cookie']) return undefined
  const publicUrl = new URL(path, externalUrl)
  if (URL.parse(String(page.headers.location), publicUrl.href)?.href !== publicUrl.href) return undefined
  return warning('upstream.loop', `the application redirects ${publicUrl.href} to the same address`, {
    why: 'browsers stop with an error about too many redirects',
    todo: 'remove the redirect in the application, or let it read X-Forwarded-Proto and X-Forwarded-Host, which name the public address',
  })
}

/**
 * Rules about MCP rely on a server that compares the fields with the content. The request calls a
 * tool that does not exist, and names another one in its fields.
 */
async function mcpFinding(upstream: UpstreamConfig): Promise<Finding | undefined> {
  const rule = upstream.rules.find(({ mcp }) => mcp !== undefined)
  if (rule === undefined) return undefined
  const id = 'upstream.mcp'
  const place = mcpEndpoint(upstream, rule)
  const [called, named] = ['gatehouse-doctor-content', 'gatehouse-doctor-field']
  const _meta = {
    'io.modelcontextprotocol/protocolVersion': mcpRevision,
    'io.modelcontextprotocol/clientCapabilities': {},
  }
  const message = { jsonrpc: '2.0', id: 1, method: toolCall, params: { name: called, arguments: {}, _meta } }
  const content = JSON.stringify(message)
  const headers = {
    ...{ host: hostFor(upstream), accept: 'application/json, text/event-stream', 'content-type': 'application/json' },
    ...{ 'content-length': String(content.length), 'mcp-protocol-version': mcpRevision },
    ...{ 'mcp-method': toolCall, 'mcp-name': named },
  }
  const response = await request(place, {
    ...{ method: 'POST', headers, content, contentBytes: 64 * 1024 },
    ...wayTo(upstream),
  })
  if (!('status' in response)) return undefined
  if (/"code"\s*:\s*-32020\b/.test(response.content ?? ''))
    return ok(id, `the MCP server at ${place.pathname} rejects a call of another tool than Mcp-Name says`)
  // Other servers want to know who calls, or speak another revision, which the gateway refuses.
  if (response.status < 200 || response.status >= 300) return undefined
  return warning(
    id,
    `the MCP server at ${place.pathname} does not reject a call of another tool than Mcp-Name says: it responds with ${response.status}`,
    {
      why: `rules with mcp decide by the header fields, so who may call one tool can call them all`,
      todo: `use a server that verifies Mcp-Method and Mcp-Name, as revision ${mcpRevision} requires, or remove mcp from the rules of upstreams.${upstream.name}`,
    },
  )
}

/** The URL of the MCP server: the path of the rule, unless it has a placeholder. */
function mcpEndpoint(upstream: UpstreamConfig, rule: UpstreamConfig['rules'][number]): URL {
  return placeOf(rule.path.text.includes('*') ? upstream.path.replace(/(.)\/$/, '$1') : rule.path.text, upstream)
}

/** Where the application serves a path that clients use. */
function placeOf(target: string, { url, path, stripPath }: UpstreamConfig): URL {
  const base = path.replace(/\/$/, '')
  return new URL(url.pathname.replace(/\/$/, '') + (stripPath ? target.slice(base.length) || '/' : target), url)
}

/** Whether the application asks for a sign-in as `application_sign_in` says. No secret is sent. */
async function signInFinding(upstream: UpstreamConfig): Promise<Finding | undefined> {
  const { name, applicationSignIn: signIn, externalUrl } = upstream
  if (signIn === undefined || signIn.kind === 'json') return undefined
  const { kind, action, page = action, values } = signIn
  const place = placeOf(page, upstream)
  const forwarded = { 'x-forwarded-proto': externalUrl.protocol.slice(0, -1), 'x-forwarded-host': externalUrl.host }
  const headers = { host: hostFor(upstream), accept: 'text/html', 'accept-encoding': 'identity', ...forwarded }
  const response = await request(place, { method: 'GET', headers, ...wayTo(upstream), contentBytes: pageBytes })
  if (!('status' in response)) return undefined
  const id = 'upstream.application_sign_in'
  const lacks = (what: string) =>
    warning(id, `${what}: it responds with ${response.status} to GET ${page}`, {
      why: 'people get the sign-in of the application; a signed-in person, whose identity headers doctor does not send, may get another response',
      todo: `compare upstreams.${name}.application_sign_in with what the application sends for ${page}`,
    })
  if (kind === 'basic')
    return response.status === 401 && /\bbasic\b/i.test([response.headers['www-authenticate'] ?? []].flat().join())
      ? ok(id, `the application asks for Basic at ${page}`)
      : lacks('the application does not ask for Basic')
  const names = values.map(([field]) => field)
  const form = findForm(Buffer.from(response.content ?? '', 'latin1').toString(), names)
  if (form === undefined) return lacks(`the page has no form with ${names.join(' and ')}`)
  if ('unclear' in form) return lacks(`the form is not understood, because ${form.unclear}`)
  const [sentTo, path] = [URL.parse(form.action, place.href), action.replace(/\?.*/s, '')]
  // Many applications write `http:` behind TLS, and the gateway replaces it.
  if (sentTo?.host !== externalUrl.host && ![place.origin, ...upstream.alsoKnownAs].includes(sentTo?.origin ?? ''))
    return lacks('the form is sent to another origin')
  return sentTo?.pathname === path || sentTo?.pathname === placeOf(path, upstream).pathname
    ? ok(id, `the page ${page} has the form with ${names.join(' and ')}, which is sent to ${path}`)
    : lacks(`the form is not sent to ${path}`)
}

const policyField = 'content-security-policy'

/** The page that the application gets for the `path` of the upstream. */
function firstPage({ url, path, stripPath }: UpstreamConfig): URL {
  return new URL(url.pathname.replace(/\/$/, '') + (stripPath ? '/' : path), url)
}

/** How a request gets to the only target. The addresses of a name have its certificate. */
function wayTo({ targets: [target], tls, resolve }: UpstreamConfig): Pick<RequestOptions, 'tls' | 'socketPath'> {
  const serverName = tls.serverName ?? (resolve?.kind === 'a' ? resolve.name : undefined)
  return { tls: { ...tls, serverName }, socketPath: target?.socketPath }
}

/** The `Host` that the application gets. */
function hostFor({ url, externalUrl, hostHeader }: UpstreamConfig): string {
  return hostHeader === 'client' ? externalUrl.host : url.host
}

/** The first page as a health check: a response with any status shows that it speaks HTTP/2. */
async function connectedFinding(upstream: UpstreamConfig, why: string): Promise<Finding> {
  const id = 'upstream.reachable'
  const { name, protocol, targets } = upstream
  const place = targets.map(targetName).join()
  const { pathname } = firstPage(upstream)
  const failure = await checkOf(upstream, { path: pathname, timeoutMs: pauses.examineMs, expect: [] })
  const status = failure === undefined ? 'a status below 400' : /^status \d+$/.test(failure) ? failure : undefined
  if (status !== undefined) return ok(id, `${place} speaks HTTP/2: it responds to GET ${pathname} with ${status}`)
  if (/does not speak HTTP\/2/.test(failure ?? ''))
    return fault(id, `${place} does not speak HTTP/2, but upstreams.${name}.protocol is ${protocol}`, {
      why,
      todo: `remove protocol from upstreams.${name}, or let the application speak HTTP/2 there`,
    })
  const advice = connectionAdvice({ why: failure ?? '' }, 'the url of the upstream', 'its ca_file')
  return fault(id, `a request over HTTP/2 to ${place} fails: ${failure}`, { why, todo: advice })
}

/** Whether the health checks of the gateway would succeed, at each target. */
async function healthFindings(
  { name, healthCheck }: UpstreamConfig,
  alone: readonly UpstreamConfig[],
): Promise<readonly Finding[]> {
  if (healthCheck === undefined) return []
  const id = 'upstream.health_check'
  const { path } = healthCheck
  const failures = await Promise.all(alone.map((each) => checkOf(each, healthCheck)))
  const isAll = failures.every((failure) => failure !== undefined)
  const findings = failures.map((failure, index) => {
    const place = alone[index]?.targets.map(targetName).join()
    if (failure === undefined) return ok(id, `the check GET ${path} of ${place} succeeds`)
    return fault(id, `the check GET ${path} of ${place} fails: ${failure}`, {
      why: isAll
        ? 'all targets are unhealthy: then all of them get requests, and a target that fails is not noticed'
        : 'it gets no requests until the check succeeds',
      todo: `compare path and expect of upstreams.${name}.health_check with what the application offers`,
    })
  })
  return findings
}

/** Sends a health check to the only target. */
function checkOf(
  upstream: UpstreamConfig,
  check: Pick<HealthCheckConfig, 'path' | 'timeoutMs' | 'expect'>,
): Promise<string | undefined> {
  const [target] = upstream.targets
  if (target === undefined) return Promise.resolve('there is no target')
  return checkHealth(upstream, check, () => connectTo(upstream, target, 1))
}

async function reachableFinding(upstream: UpstreamConfig, why: string): Promise<Finding> {
  const id = 'upstream.reachable'
  const { url, targets } = upstream
  const name = targets.map(targetName).join()
  const host = hostFor(upstream)
  const first = firstPage(upstream)
  const send = (method: string) => request(first, { method, headers: { host }, ...wayTo(upstream) })
  const head = await send('HEAD')
  // Some applications support GET only.
  const isUnsupported = 'status' in head && (head.status === 501 || head.status === 405)
  const outcome = isUnsupported ? await send('GET') : head
  const method = isUnsupported ? 'GET' : 'HEAD'
  if ('why' in outcome) {
    const mismatch = await httpSchemeMismatch(outcome.why, url)
    return fault(id, `a request to ${name} fails: ${outcome.why}`, {
      why,
      todo:
        mismatch === undefined
          ? connectionAdvice(outcome, 'the url of the upstream', 'its ca_file')
          : `${mismatch} in the url of the upstream`,
    })
  }
  const what = `${name} responds to ${method} ${first.pathname} with ${outcome.status} in ${Math.ceil(outcome.ms)} ms`
  // A TLS server that receives plain HTTP responds with 400 in plain HTTP.
  const mismatch = outcome.status === 400 ? await httpSchemeMismatch('status 400', url) : undefined
  if (mismatch !== undefined)
    return fault(id, what, { why: 'the application is unreachable', todo: `${mismatch} in the url of the upstream` })
  const other = outcome.status < 400 ? undefined : await hostFinding(upstream, what, { method, status: outcome.status })
  if (other !== undefined) return other
  if (outcome.status < 500) return ok(id, what)
  return warning(id, what, {
    why: 'the application, or a proxy in front of it, has an error, or does not serve this host',
    todo: `check its log; the request was for the host ${host} (host_header)`,
  })
}

/**
 * Many applications refuse a name that they do not know, against DNS rebinding: with 400, 403, 404
 * or 421. Whether the name is the cause shows in the response to the same request with the other
 * name.
 */
async function hostFinding(
  upstream: UpstreamConfig,
  what: string,
  { method, status }: { readonly method: string; readonly status: number },
): Promise<Finding | undefined> {
  const { name, url, externalUrl, hostHeader } = upstream
  const own = hostFor(upstream)
  const other = hostHeader === 'client' ? url.host : externalUrl.host
  if (own === other) return undefined
  const outcome = await request(firstPage(upstream), { method, headers: { host: other }, ...wayTo(upstream) })
  if ('why' in outcome || outcome.status >= 400) return undefined
  return warning('upstream.reachable', what, {
    why: `the application refuses the host ${own}: for the host ${other}, it responds with ${outcome.status} in place of ${status}`,
    todo:
      hostHeader === 'client'
        ? `allow the host ${own} in the application, or set host_header: upstream and origin_header: upstream in upstreams.${name}`
        : `remove host_header from upstreams.${name}, or allow the host ${own} in the application`,
  })
}

/**
 * A client that reaches the application without the gateway can pose as anybody. This checks
 * whether the port is open on an address at which others reach this machine, or whether the
 * upstream has an address of the internet.
 */
async function bypassFinding(
  { url, externalUrl, targets: [target] }: UpstreamConfig,
  outside: readonly string[],
): Promise<Finding | undefined> {
  const id = 'upstream.around'
  // Who may connect to a socket in the file system is a matter of its permissions.
  if (target?.socketPath !== undefined) return undefined
  const port = portOf(url)
  const why =
    'a client that reaches the application without the gateway can pose as anybody with its own identity headers'
  const named = await addressesOf(url.hostname)
  const own = outside.filter((address) => named.includes(address))
  if (own.length === 0 && !named.some(isLoopback)) return elsewhereFinding(url, named, why)
  const candidates = own.length > 0 ? own : outside
  const tried = await Promise.all(candidates.map(async (address) => ((await listens(address, port)) ? [address] : [])))
  const open = tried.flat()
  if (open.length === 0) return ok(id, `port ${port} is closed on all addresses of this machine that others can reach`)
  // On a machine for trial use, this is only a warning.
  const isTrial = isLoopback(externalUrl.hostname)
  return (isTrial ? warning : fault)(
    id,
    `port ${port} accepts connections on ${open.join(', ')}, without the gateway`,
    {
      why: `${why}. Another program may listen there, and a firewall may protect the port: doctor cannot see that`,
      todo: 'configure the application to listen on 127.0.0.1 only, or stop publishing its port',
    },
  )
}

/** The addresses of this machine, without link-local addresses, which need a zone. */
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
      : `${hostname} is another machine or container: doctor cannot see who else reaches it`,
    {
      why,
      todo: `check that curl ${origin}/ fails from the network of your users; allow only the gateway with a network policy or firewall`,
    },
  )
}
