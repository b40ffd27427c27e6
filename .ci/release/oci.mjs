// An OCI image layout (OCI Image Format Specification 1.1, "Image Layout") in a folder.
import { join } from 'node:path'
import { filesBelow, normalize, sha256, tarOf, write } from './archive.mjs'

const indexType = 'application/vnd.oci.image.index.v1+json'
const manifestType = 'application/vnd.oci.image.manifest.v1+json'

/** Writes a blob. @returns its descriptor */
function addBlob(folder, mediaType, content) {
  const bytes = Buffer.isBuffer(content) ? content : Buffer.from(JSON.stringify(content))
  const digest = sha256(bytes)
  write(join(folder, 'blobs', 'sha256', digest), bytes)
  return { mediaType, digest: `sha256:${digest}`, size: bytes.length }
}

/** Writes a manifest with its configuration and one layer. @returns its descriptor */
export function addManifest(folder, { config, layer, annotations }) {
  return addBlob(folder, manifestType, {
    schemaVersion: 2,
    mediaType: manifestType,
    config: addBlob(folder, config.mediaType, config.content),
    layers: [addBlob(folder, layer.mediaType, layer.content)],
    annotations,
  })
}

/** Writes an index of manifests for several platforms. @returns its descriptor */
export function addIndex(folder, manifests, annotations) {
  return addBlob(folder, indexType, { schemaVersion: 2, mediaType: indexType, manifests, annotations })
}

/** Completes a layout with one named entry. @returns the layout as a tar archive */
export function layoutOf(folder, descriptor, name, epoch) {
  const annotations = { 'org.opencontainers.image.ref.name': name }
  const manifests = [{ ...descriptor, annotations }]
  write(join(folder, 'oci-layout'), JSON.stringify({ imageLayoutVersion: '1.0.0' }))
  write(join(folder, 'index.json'), JSON.stringify({ schemaVersion: 2, mediaType: indexType, manifests }))
  normalize(folder, epoch)
  return tarOf(folder, filesBelow(folder), epoch)
}

/** The annotations that every artefact has (OCI Image Format Specification 1.1, "Annotations"). */
export function annotationsOf({ version, license, url }, { title, description, epoch, revision }) {
  const of = { title, description, version, revision, licenses: license, source: url }
  const created = new Date(epoch * 1000).toISOString().replace('.000', '')
  return Object.fromEntries(
    Object.entries({ created, ...of }).map(([name, value]) => [`org.opencontainers.image.${name}`, value]),
  )
}
