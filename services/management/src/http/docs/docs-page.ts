/** Names below `/docs/`: what the page loads, all of it served by us. */
export const INITIALIZER_NAME = 'initializer.js';
export const ASSET_NAMES = ['swagger-ui.css', 'swagger-ui-bundle.js', 'favicon-32x32.png'] as const;

const [STYLES, BUNDLE, ICON] = ASSET_NAMES;

/**
 * The page that shows the document. Its links are relative, so that it works below a sub-path too.
 * @param assetsPath what leads from the page's own path to its assets: `docs/` or, behind a slash, nothing
 */
export function docsPage(assetsPath: '' | 'docs/'): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Runhook API</title>
<link rel="stylesheet" href="${assetsPath}${STYLES}">
<link rel="icon" type="image/png" href="${assetsPath}${ICON}">
</head>
<body>
<div id="swagger-ui"></div>
<noscript>This page needs JavaScript. The document itself is openapi.json, beside this page.</noscript>
<script src="${assetsPath}${BUNDLE}"></script>
<script src="${assetsPath}${INITIALIZER_NAME}"></script>
</body>
</html>
`;
}

/**
 * Starts the page. The document is found from this script's own address. `validatorUrl: null`: Swagger UI would
 * otherwise show a badge from another host.
 */
export const INITIALIZER = `window.ui = SwaggerUIBundle({
  url: new URL('../openapi.json', document.currentScript.src).href,
  dom_id: '#swagger-ui',
  deepLinking: true,
  defaultModelsExpandDepth: 0,
  validatorUrl: null,
});
`;
