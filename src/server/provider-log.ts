import type { ProviderConfig } from '../config/model/provider.ts'
import { inSettingsOf } from '../config/provider-setting.ts'
import type { Log, LogFields } from '../observe/log.ts'

/**
 * The log for the messages about one of several providers: it names the provider and its settings.
 */
export function providerLog(log: Log, config: ProviderConfig): Log {
  if (config.setting === 'provider') return log
  const named = (fields: LogFields = {}): LogFields => ({
    provider: config.name,
    ...Object.fromEntries(
      Object.entries(fields).map(([name, value]) => [
        name,
        typeof value === 'string' && (name === 'reason' || name === 'hint') ? inSettingsOf(config, value) : value,
      ]),
    ),
  })
  return {
    debug: (message, fields) => log.debug(message, named(fields)),
    info: (message, fields) => log.info(message, named(fields)),
    warn: (message, fields) => log.warn(message, named(fields)),
    error: (message, fields) => log.error(message, named(fields)),
    announce: (message, fields) => log.announce(message, named(fields)),
  }
}
