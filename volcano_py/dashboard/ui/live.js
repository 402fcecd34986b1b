// Shows HTML that the server has drawn and escaped. When it changes, keyboard focus and scroll positions stay.
const FOCUSABLE = "a, button, [tabindex]";

export default {
  template: `<div></div>`,
  props: { html: String },
  mounted() {
    this.draw();
  },
  updated() {
    this.draw();
  },
  methods: {
    draw() {
      if (this.html === this.shown) return;
      const inside = this.$el.contains(document.activeElement) ? document.activeElement : null;
      const href = inside && inside.getAttribute("href");
      const place = inside ? [...this.$el.querySelectorAll(FOCUSABLE)].indexOf(inside) : -1;
      const scrolled = [...this.$el.querySelectorAll(".scroll")].map((e) => e.scrollLeft);
      this.$el.innerHTML = this.shown = this.html;
      this.$el.querySelectorAll(".scroll").forEach((e, i) => (e.scrollLeft = scrolled[i] || 0));
      if (!inside) return;
      const now = [...this.$el.querySelectorAll(FOCUSABLE)];
      const same = now.find((e) => href && e.getAttribute("href") === href) || now[place];
      if (same) same.focus({ preventScroll: true });
    },
  },
};
