// The key stays in this browser tab's memory: nothing is stored.
window.ui = SwaggerUIBundle({
  url: "/openapi.json",
  dom_id: "#reference",
  deepLinking: true,
  docExpansion: "list",
  defaultModelsExpandDepth: 0,
  defaultModelRendering: "example",
  displayRequestDuration: true,
  filter: true,
  tryItOutEnabled: true,
  supportedSubmitMethods: ["get"],
  presets: [SwaggerUIBundle.presets.apis],
  layout: "BaseLayout",
});
