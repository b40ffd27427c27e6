import type { PathPattern } from '../../core/path-pattern.ts'
import { below, type Report } from '../document/report.ts'
import type { GatewayConfig } from '../model/gateway.ts'
import type { UpstreamConfig } from '../model/upstream.ts'
import { settingOf } from './check.ts'
import { ruleIndexOf } from './rule-index.ts'

export function rules({ upstreams }: GatewayConfig, report: Report): void {
  for (const { name, path, rules } of upstreams) {
    const at = settingOf(name, 'rules')
    if (!report.isValid(at, settingOf(name, 'path'))) continue
    for (const [index, rule] of rules.entries()) {
      const place = below(at, index)
      // A rule covers itself.
      const earlier = ruleIndexOf(rules).firstCovering(rule)
      if (earlier >= 0 && earlier < index)
        report.warning(
          place,
          `is never reached: rules[${earlier}] matches all of its requests`,
          'the first rule that matches decides',
        )
      if (!canMatchBelow(rule.path, path))
        report.warning(below(place, 'path'), `is never reached: this upstream serves only paths below ${path}`)
      if (
        rule.access !== 'signed_in' &&
        rule.path.suffix !== undefined &&
        rule.path.segments.every((name) => name === '*')
      )
        report.warning(
          below(place, 'path'),
          `lets everybody request any path with this ending: many applications take /admin/x${rule.path.suffix} for /admin`,
          `name the folder of these files, such as /static/*${rule.path.suffix}`,
        )
      if (rule.access !== 'signed_in' && report.isSet(below(place, 'unauthenticated')))
        report.warning(below(place, 'unauthenticated'), `does not apply: access: ${rule.access} requires no sign-in`)
    }
  }
}

/** Whether a pattern can match a path of the upstream. */
export function canMatchBelow(pattern: PathPattern, path: UpstreamConfig['path']): boolean {
  const wanted = path.split('/').slice(1, -1)
  const { segments, below: isOpen } = pattern
  if (!isOpen && segments.length < wanted.length) return false
  return wanted.every(
    (name, index) => segments[index] === undefined || segments[index] === '*' || segments[index] === name,
  )
}
