// The layers of the image, as a layout that takes the place of the stage "build" of the Dockerfile
// (docs/decisions/0030-a-release-is-built-twice.md).
import { cpSync, mkdirSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { gzip, normalize, sha256, tarOf, write } from './archive.mjs'
import { addIndex, addManifest, annotationsOf, layoutOf } from './oci.mjs'

const platforms = [
  { os: 'linux', architecture: 'amd64' },
  { os: 'linux', architecture: 'arm64', variant: 'v8' },
]

/** Files and folders, each folder before its content, because the stage has both. */
const everythingIn = (folder) => readdirSync(folder, { recursive: true }).map(String).sort()

/** Writes `gatehouse-image-layers-VERSION.oci.tar`. */
export function writeImageLayers({ identity, source, program, work, out, epoch, revision }) {
  const stage = join(work, 'image', 'stage')
  mkdirSync(join(stage, 'build'), { recursive: true })
  for (const name of ['package.json', 'LICENSE', 'schemas'])
    cpSync(join(source, name), join(stage, 'build', name), { recursive: true })
  cpSync(program, join(stage, 'build', 'dist'), { recursive: true })
  normalize(stage, epoch)
  const tar = tarOf(stage, everythingIn(stage), epoch)
  const layer = { mediaType: 'application/vnd.oci.image.layer.v1.tar+gzip', content: gzip(tar, epoch) }

  const layout = join(work, 'image', 'layout')
  const { description } = identity
  const annotations = annotationsOf(identity, { title: 'Gatehouse', description, epoch, revision })
  const created = annotations['org.opencontainers.image.created']
  const manifests = platforms.map((platform) => ({
    ...addManifest(layout, {
      annotations,
      layer,
      config: {
        mediaType: 'application/vnd.oci.image.config.v1+json',
        content: {
          created,
          ...platform,
          config: {},
          rootfs: { type: 'layers', diff_ids: [`sha256:${sha256(tar)}`] },
          history: [{ created, created_by: 'npm run release' }],
        },
      },
    }),
    platform,
  }))
  const index = addIndex(layout, manifests, annotations)
  write(
    join(out, `gatehouse-image-layers-${identity.version}.oci.tar`),
    layoutOf(layout, index, identity.version, epoch),
  )
}
