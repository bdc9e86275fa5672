// The report on the landing page follows the theme switch of the site.
(() => {
  const frame = document.querySelector("iframe.report");
  if (!frame) return;
  // Both still name the scheme, so that the rules are found at the next switch.
  const always = "(prefers-color-scheme: dark), all";
  const never = "(prefers-color-scheme: dark) and (max-width: 0px)";
  const paint = () => {
    // Null for pages opened as files, and without a root while it is loading.
    const report = frame.contentDocument;
    if (!report?.documentElement) return;
    const dark = document.documentElement.dataset.theme === "dark";
    for (const sheet of report.styleSheets) {
      for (const rule of sheet.cssRules) {
        if (rule.media?.mediaText.includes("prefers-color-scheme")) {
          rule.media.mediaText = dark ? always : never;
        }
      }
    }
    report.documentElement.style.colorScheme = dark ? "dark" : "light";
  };
  frame.addEventListener("load", paint);
  paint();
  new MutationObserver(paint).observe(document.documentElement, {
    attributeFilter: ["data-theme"],
  });
})();
