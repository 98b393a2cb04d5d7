/* Everything here is extra: without it each page still has its numbers, tables, charts and links. */
(function (d) {
  "use strict";
  var root = d.documentElement;
  var chosen = null;
  root.classList.add("js");
  try {
    chosen = localStorage.getItem("theme");
  } catch (ignored) {
    /* storage is off */
  }
  if (chosen === "light" || chosen === "dark") root.dataset.theme = chosen;

  function all(selector, within) {
    return Array.prototype.slice.call((within || d).querySelectorAll(selector));
  }

  /* theme: follows the system until the reader chooses */
  function isDark() {
    if (root.dataset.theme) return root.dataset.theme === "dark";
    return matchMedia("(prefers-color-scheme: dark)").matches;
  }

  function themeButton(button) {
    function say() {
      button.textContent = isDark() ? "Light" : "Dark";
      button.setAttribute("aria-label", "Use the " + (isDark() ? "light" : "dark") + " theme");
    }
    button.addEventListener("click", function () {
      root.dataset.theme = isDark() ? "light" : "dark";
      try {
        localStorage.setItem("theme", root.dataset.theme);
      } catch (ignored) {
        /* the choice lasts as long as the page */
      }
      say();
      d.dispatchEvent(new CustomEvent("themechange"));
    });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", function () {
      say();
      d.dispatchEvent(new CustomEvent("themechange"));
    });
    say();
  }

  /* a table that fits needs no tab stop */
  function watchScrollers() {
    if (!window.ResizeObserver) return;
    var observer = new ResizeObserver(function (entries) {
      entries.forEach(function (entry) {
        var box = entry.target;
        box.tabIndex = box.scrollWidth > box.clientWidth + 1 ? 0 : -1;
      });
    });
    all(".scroll").forEach(function (box) {
      observer.observe(box);
    });
  }

  function copyButton(button) {
    var source = d.getElementById(button.dataset.copy);
    function done(word) {
      button.textContent = word;
      setTimeout(function () {
        button.textContent = "Copy";
      }, 1500);
    }
    function select() {
      var range = d.createRange();
      range.selectNodeContents(source);
      getSelection().removeAllRanges();
      getSelection().addRange(range);
      done(d.execCommand("copy") ? "Copied" : "Selected");
    }
    button.addEventListener("click", function () {
      if (!navigator.clipboard) return select();
      navigator.clipboard.writeText(source.textContent).then(function () {
        done("Copied");
      }, select);
    });
  }

  /* sorts inside each group of a table, so that power scopes never mix; what is missing stays last */
  function sortHead(head) {
    var button = d.createElement("button");
    button.type = "button";
    while (head.firstChild) button.appendChild(head.firstChild);
    head.appendChild(button);
    button.addEventListener("click", function () {
      var table = head.closest("table");
      var index = head.cellIndex;
      var up = head.getAttribute("aria-sort") === "ascending" ? -1 : 1;
      all("th[aria-sort]", table).forEach(function (other) {
        other.removeAttribute("aria-sort");
      });
      head.setAttribute("aria-sort", up > 0 ? "ascending" : "descending");
      all("tbody", table).forEach(function (group) {
        var rows = all("tr:not(.grp)", group);
        rows.sort(function (a, b) {
          return compare(value(a.cells[index]), value(b.cells[index]), up);
        });
        rows.forEach(function (row) {
          group.appendChild(row);
        });
      });
    });
  }

  function value(cell) {
    return cell.dataset.v === undefined ? cell.textContent.trim() : cell.dataset.v;
  }

  function compare(a, b, up) {
    if (a === "" || b === "") return (a === "") - (b === "");
    if (isNaN(a) || isNaN(b)) return up * a.localeCompare(b, "en", { numeric: true });
    return up * (a - b);
  }

  /* facets of the results table; their state is in the address */
  function facets(form) {
    var groups = all("#results tbody");
    function apply(write) {
      var on = {};
      var query = new URLSearchParams();
      all("input:checked", form).forEach(function (box) {
        (on[box.name] = on[box.name] || []).push(box.value);
        query.append(box.name, box.value);
      });
      var shown = 0;
      var total = 0;
      groups.forEach(function (group) {
        var here = 0;
        all("tr:not(.grp)", group).forEach(function (row) {
          var fits = Object.keys(on).every(function (name) {
            return on[name].indexOf(row.dataset[name]) >= 0;
          });
          row.hidden = !fits;
          total += 1;
          here += fits ? 1 : 0;
        });
        group.hidden = !here;
        shown += here;
      });
      d.getElementById("count").textContent = shown === total ? total + " runs" : shown + " of " + total + " runs";
      if (!write) return;
      try {
        history.replaceState(null, "", String(query) ? "?" + query : location.pathname);
      } catch (ignored) {
        /* some browsers refuse it for files */
      }
    }
    new URLSearchParams(location.search).forEach(function (wanted, name) {
      all("input", form).forEach(function (box) {
        if (box.name === name && box.value === wanted) box.checked = true;
      });
    });
    form.addEventListener("change", function () {
      apply(true);
    });
    form.addEventListener("reset", function () {
      setTimeout(function () {
        apply(true);
      });
    });
    apply(false);
  }

  /* the nearest point under the pointer or finger */
  function tips() {
    var tip = d.createElement("div");
    tip.className = "tip";
    tip.hidden = true;
    d.body.appendChild(tip);
    function hide() {
      tip.hidden = true;
    }
    function show(mark) {
      var box = mark.getBoundingClientRect();
      tip.textContent = mark.dataset.tip;
      tip.hidden = false;
      var left = box.left + box.width / 2 - tip.offsetWidth / 2;
      tip.style.left = Math.max(8, Math.min(innerWidth - tip.offsetWidth - 8, left)) + "px";
      tip.style.top = (box.top > 70 ? box.top - tip.offsetHeight - 8 : box.bottom + 8) + "px";
    }
    all("svg.c").forEach(function (chart) {
      var marks = all(".mk", chart).filter(function (mark) {
        var title = mark.querySelector("title");
        if (!title) return false;
        mark.dataset.tip = title.textContent;
        title.remove();
        return true;
      });
      chart.addEventListener("pointermove", function (event) {
        var best = null;
        var least = 900;
        marks.forEach(function (mark) {
          var box = mark.getBoundingClientRect();
          var x = box.left + box.width / 2 - event.clientX;
          var y = box.top + box.height / 2 - event.clientY;
          if (x * x + y * y < least) {
            least = x * x + y * y;
            best = mark;
          }
        });
        if (best) show(best);
        else hide();
      });
      chart.addEventListener("pointerleave", hide);
    });
    addEventListener("scroll", hide, { passive: true });
  }

  /* marks the section in view in the contents */
  function contents() {
    var links = all(".toc a");
    if (!links.length || !window.IntersectionObserver) return;
    var seen = {};
    var observer = new IntersectionObserver(
      function (entries) {
        entries.forEach(function (entry) {
          seen[entry.target.id] = entry.isIntersecting;
        });
        var current = links.find(function (link) {
          return seen[link.hash.slice(1)];
        });
        if (!current) return;
        links.forEach(function (link) {
          link.classList.toggle("on", link === current);
        });
      },
      { rootMargin: "0px 0px -60% 0px" }
    );
    all("section[id]").forEach(function (section) {
      observer.observe(section);
    });
  }

  d.addEventListener("DOMContentLoaded", function () {
    all("[data-toggle]").forEach(themeButton);
    all("[data-copy]").forEach(copyButton);
    all("th[data-k]").forEach(sortHead);
    all("#facets").forEach(facets);
    var filters = d.getElementById("filters");
    if (filters && innerWidth < 640) filters.open = false;
    watchScrollers();
    tips();
    contents();
  });
})(document);
