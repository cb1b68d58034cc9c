package page

// Page is sections of elements, whatever they are about.
type Page struct {
	Title, Summary, Version string
	Sections                []Section
}

// Section is a part of a page; ID names it in links.
type Section struct {
	ID, Title string
	Elements  []Element
}
