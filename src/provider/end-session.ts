import { endSessionPlaceholders, fillPlaceholders, placeholdersIn } from '../config/end-session-params.ts'
import type { EndSessionConfig, ProviderConfig } from '../config/model/provider.ts'
import { objectIn } from '../core/json.ts'
import { providerUnavailable } from './provider-errors.ts'

/** How a sign-out of a browser ends the session at the provider. */
export type EndSessionRequest =
  | { readonly kind: 'redirect'; readonly url: URL }
  /** The browser posts a form with these fields. */
  | { readonly kind: 'form'; readonly url: URL; readonly fields: Readonly<Record<string, string>> }
  /** The session has already ended at the provider. */
  | { readonly kind: 'ended' }

/** The values of the parameters. Without `id_token_hint`, `client_id` names the client. */
export interface EndSessionValues {
  readonly id_token_hint: string | undefined
  readonly post_logout_redirect_uri: string
  readonly state: string
}

type Config = Pick<ProviderConfig, 'client_id' | keyof EndSessionConfig>

/**
 * The logout request to `endpoint` (RP-Initiated Logout 1.0 §2). Servers reject a long URL, and the
 * person would stay signed in at the provider. So the gateway first sends a long ID Token itself,
 * by `post`. If the endpoint then neither ends the session nor shows a page to browsers,
 * `client_id` replaces the ID Token in the URL.
 */
export async function endSessionRequest(
  endpoint: URL,
  values: EndSessionValues,
  config: Config,
  post: (id_token_hint: string) => Promise<Response>,
): Promise<EndSessionRequest> {
  const { endSessionForm: form, longestEndSessionUrlBytes: longest } = config
  const fields = parametersOf(values, config)
  if (form === 'always') return { kind: 'form', url: endpoint, fields }
  const url = withParameters(endpoint, fields)
  const { id_token_hint } = values
  if (id_token_hint === undefined || url.href.length <= longest) return { kind: 'redirect', url }
  const response = form === 'never' ? undefined : await post(id_token_hint).catch(() => undefined)
  if (response !== undefined && isForBrowsers(response)) return { kind: 'form', url: endpoint, fields }
  const outcome = response && (await endSessionOutcome(response).catch(() => undefined))
  if (outcome === 'ended') return { kind: 'ended' }
  const withoutHint = parametersOf({ ...values, id_token_hint: undefined }, config)
  return { kind: 'redirect', url: withParameters(endpoint, withoutHint) }
}

/** Whether the provider returns `state` with the browser after the logout. */
export function sendsEndSessionState({
  endSessionParams: params,
}: Pick<EndSessionConfig, 'endSessionParams'>): boolean {
  return (
    params['state'] !== null || Object.values(params).some((value) => placeholdersIn(value ?? '').includes('state'))
  )
}

/** Whether the request has the ID Token, by which a session can end without a browser. */
export function sendsIdTokenHint({ endSessionParams: params }: Pick<EndSessionConfig, 'endSessionParams'>): boolean {
  return params['id_token_hint'] !== null
}

function parametersOf(values: EndSessionValues, { client_id, endSessionParams }: Config): Record<string, string> {
  const known = { ...values, client_id }
  const standard = endSessionPlaceholders
    .filter((name) => name !== (values.id_token_hint === undefined ? 'id_token_hint' : 'client_id'))
    .map((name): [string, string] => [name, `{${name}}`])
  const templates = Object.entries({ ...Object.fromEntries(standard), ...endSessionParams })
  return Object.fromEntries(
    templates.flatMap(([name, template]) => {
      const value = template === null ? undefined : fillPlaceholders(template, known)
      return value === undefined ? [] : [[name, value]]
    }),
  )
}

function withParameters(endpoint: URL, fields: Readonly<Record<string, string>>): URL {
  const url = new URL(endpoint)
  for (const [name, value] of Object.entries(fields)) url.searchParams.set(name, value)
  return url
}

/**
 * The outcome of a `POST` to the end-session endpoint without a browser: `ended` after a success
 * without a page. A redirect, an error or a page do not show whether the session has ended.
 * @throws {GatewayError} `ERR_PROVIDER_UNAVAILABLE` when it was not processed (408, 429, 5xx)
 */
export async function endSessionOutcome(response: Response): Promise<'ended' | 'unknown'> {
  const { status } = response
  if (status >= 500 || status === 429 || status === 408)
    throw providerUnavailable(`end_session_endpoint responded with status ${status}`)
  if (!response.ok) return 'unknown'
  const text = await response.text()
  // A page that asks "Do you want to log out?" has status 200 too. Only markup shows a page,
  // because some providers send "OK" as text/html.
  if (/<[a-z!?]/i.test(text)) return 'unknown'
  // An OAuth error document (RFC 6749 §5.2). Its status may be 200.
  return 'error' in (objectIn(text) ?? {}) ? 'unknown' : 'ended'
}

/** Whether the endpoint responded as it does to a browser: with a page or a redirect. */
function isForBrowsers({ status, ok, headers }: Response): boolean {
  const isPage = ok && headers.get('content-type')?.startsWith('text/html') === true
  return isPage || (status >= 300 && status < 400)
}
