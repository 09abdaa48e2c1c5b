export { isArtifactPath, PATH_CHARACTERS_MAX, PATH_PATTERN } from './artifact-path.ts';
export { deleteOrphans } from './delete-orphans.ts';
export { type ArtifactsLocation, openArtifactStore, parseArtifactsUrl } from './open-store.ts';
export {
  type ArtifactStore,
  ArtifactStoreError,
  type ByteRange,
  EXTERNAL_FILE_BYTES_MAX,
  type ObjectKey,
  type StoredObject,
} from './store.ts';
