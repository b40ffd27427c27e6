import { Redis } from 'ioredis'

/** Lets all leases expire, as if their time had passed. */
export async function expireLeases({ port }: { readonly port: number }): Promise<void> {
  const redis = new Redis(port, '127.0.0.1')
  const leases = await redis.keys('*:l:*')
  for (const lease of leases) await redis.pexpire(lease, 1)
  redis.disconnect()
}
