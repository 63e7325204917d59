export { Stream, streamFor } from '@shoal/cuda-base'
