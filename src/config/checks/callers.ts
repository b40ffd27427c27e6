import { below, type Report } from '../document/report.ts'
import type { GatewayConfig } from '../model/gateway.ts'
import { type Check, settingOf } from './check.ts'

/** The checks of access tokens and service accounts. Their settings work together with rules. */
export const callerChecks: readonly Check[] = [unusedAccessTokens, unusedServiceAccounts, testedAccounts]

function unusedAccessTokens({ upstreams }: GatewayConfig, report: Report): void {
  for (const { name, accessTokens, rules, forwardAuth } of upstreams) {
    const at = settingOf(name, 'access_tokens')
    if (accessTokens === undefined || forwardAuth || !report.isValid(at, settingOf(name, 'rules'))) continue
    if (rules.every((rule) => rule.accessTokens === undefined))
      report.warning(
        at,
        'has no effect: no rule accepts access tokens',
        'write access_tokens: true in the rules of the API',
      )
  }
}

function unusedServiceAccounts({ upstreams }: GatewayConfig, report: Report): void {
  for (const { name, serviceAccounts, rules } of upstreams) {
    const at = settingOf(name, 'service_accounts')
    if (serviceAccounts === undefined || !report.isValid(at, settingOf(name, 'rules'))) continue
    if (rules.every((rule) => rule.serviceAccounts === undefined))
      report.warning(
        at,
        'has no effect: no rule accepts service accounts',
        'write service_accounts: true, or a list of accounts, in a rule',
      )
    // An error would keep the removal of the last account from taking effect.
    if (serviceAccounts.accounts.length === 0)
      report.warning(below(at, 'file'), 'has no account', 'make a line with: gatehouse service-account NAME')
  }
}

function testedAccounts({ upstreams }: GatewayConfig, report: Report): void {
  for (const { name, serviceAccounts, tests } of upstreams) {
    const settings = [settingOf(name, 'service_accounts'), settingOf(name, 'tests')]
    if (serviceAccounts === undefined || !report.isValid(...settings)) continue
    const known = new Set(serviceAccounts.accounts.map((account) => account.name))
    for (const [index, { serviceAccount }] of tests.entries()) {
      const at = below(below(settingOf(name, 'tests'), index), 'service_account')
      if (serviceAccount !== undefined && !known.has(serviceAccount) && report.isSet(at))
        report.warning(
          at,
          `is not in the file of service_accounts: without its line, ${serviceAccount} gets 401 and not the tested outcome`,
        )
    }
  }
}
