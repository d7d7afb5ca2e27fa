/** Most characters of a schema of Protobuf. */
export const SCHEMA_MOST = 256 * 1024;
/** Most characters of a payload that are shown. */
export const SHOWN_MOST = 64 * 1024;
