import { below, type Report } from '../document/report.ts'
import type { GatewayConfig } from '../model/gateway.ts'
import type { LogoutLink, UpstreamConfig } from '../model/upstream.ts'
import { type Check, settingOf } from './check.ts'
import { canMatchBelow } from './rules.ts'

/** The checks of `logout` of upstreams. */
export const logoutChecks: readonly Check[] = [logout, logoutCalls]

function logout({ upstreams, reservedPrefix }: GatewayConfig, report: Report): void {
  for (const { name, path, logout, sessionCookies } of upstreams) {
    const at = settingOf(name, 'logout')
    const pathsAt = below(at, 'paths')
    if (report.isValid(pathsAt, settingOf(name, 'path'), '/reserved_prefix'))
      for (const [index, link] of logout.paths.entries()) {
        const isOwn = `${link.path.text}/`.startsWith(reservedPrefix)
        if (!canMatchBelow(link.path, path))
          report.warning(below(pathsAt, index), `is never reached: this upstream serves only paths below ${path}`)
        else if (isOwn)
          report.warning(below(pathsAt, index), `is never reached: paths below ${reservedPrefix} belong to the gateway`)
        else if (isEveryPage(link, path))
          report.warning(
            below(pathsAt, index),
            'matches every page of this upstream, so each request signs the person out',
            'name the logout link of the application, such as /logout',
          )
      }
    if (report.isValid(settingOf(name, 'session_cookies'), below(at, 'cookies')))
      for (const [index, cookie] of logout.cookies.entries()) {
        const cookieAt = below(below(at, 'cookies'), index)
        if (report.isSet(cookieAt) && sessionCookies.some(({ text }) => text === cookie.names.text))
          report.warning(
            cookieAt,
            'has no effect: session_cookies keeps this cookie out of the browser',
            'remove it here',
          )
      }
    const firstAt = below(at, 'pass_first')
    if (logout.passFirst && logout.paths.length === 0 && report.isValid(pathsAt, firstAt))
      report.warning(firstAt, 'has no effect: there is no logout link', 'name the logout link in logout.paths')
  }
}

/** Whether a logout link is the whole folder of the upstream. */
function isEveryPage({ path: link, query, methods }: LogoutLink, path: UpstreamConfig['path']): boolean {
  return (
    link.below &&
    link.suffix === undefined &&
    query.length === 0 &&
    methods === undefined &&
    link.segments.length < path.split('/').length - 1
  )
}

function logoutCalls({ upstreams }: GatewayConfig, report: Report): void {
  for (const { name, path, logout, sessionCookies } of upstreams) {
    const at = below(settingOf(name, 'logout'), 'call')
    const { call } = logout
    if (call === undefined || !report.isValid(at)) continue
    if (report.isValid(settingOf(name, 'path')) && !isBelow(call.target, path))
      report.error(
        at,
        `is not below ${path}, the path of this upstream`,
        `write the path that clients use, such as ${path}logout`,
      )
    if (report.isValid(settingOf(name, 'session_cookies')) && sessionCookies.length === 0)
      report.error(
        at,
        'needs session_cookies: without a cookie, the application does not know whose session to end',
        'name the session cookies of the application in session_cookies, such as [JSESSIONID]',
      )
  }
}

/** Whether a path with a query is the path of an upstream, or below it. */
function isBelow(target: string, path: UpstreamConfig['path']): boolean {
  return `${target.replace(/\?.*$/s, '').replace(/\/$/, '')}/`.startsWith(path)
}
