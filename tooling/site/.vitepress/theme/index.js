import DefaultTheme from 'vitepress/theme-without-fonts'
import './style.css'

// biome-ignore lint/style/noDefaultExport: VitePress asks for one
export default DefaultTheme
